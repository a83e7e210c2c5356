// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
)

// callTime bounds a call that is no stream.
const callTime = 2 * time.Minute

// Call sends one request to the control plane and returns the body of its answer.
func (e *Env) Call(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, error) {
	data, _, err := e.CallHead(ctx, method, path, query, body)
	return data, err
}

// Ask is Call with a bar, for what may last.
func (e *Env) Ask(ctx context.Context, title, method, path string, query url.Values, body []byte) ([]byte, error) {
	bar := NewProgress(e.Err, title)
	defer bar.Done()
	return e.Call(ctx, method, path, query, body)
}

// CallHead is Call that returns the answer's header, too.
func (e *Env) CallHead(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, http.Header,
	error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	res, err := e.Open(ctx, method, path, query, body, nil)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return data, res.Header, err
}

// Open sends one request and returns a good answer, which the caller closes. head is added to the request's header.
func (e *Env) Open(ctx context.Context, method, path string, query url.Values, body []byte,
	head http.Header) (*http.Response, error) {
	base, transport, err := e.transport()
	if err != nil {
		return nil, err
	}
	u := *base
	u.Path, u.RawQuery = path, query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range head {
		req.Header[name] = values
	}
	req.Header.Set("Isthmus-Client", Version)
	if e.remote() {
		token, err := e.token()
		if err != nil {
			return nil, err
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	}
	// Only the named server gets the token.
	client := &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return nil, e.unreachable(err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	data, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	var failure v1.Failure
	if json.Unmarshal(data, &failure) != nil || failure.Error == "" {
		return nil, fmt.Errorf("%s answers %s: is it a control plane of Isthmus?", e.where(), res.Status)
	}
	return nil, errors.New(failure.Error + nextSteps[res.StatusCode])
}

// nextSteps are what to do about an answer, where its own words do not say it.
var nextSteps = map[int]string{
	http.StatusUnauthorized: " (--token-file FILE or ISTHMUS_TOKEN)",
	http.StatusForbidden: " (isthmus token make NAME --role operate makes a token that may; " +
		"control.api.tokens takes its hash)",
	http.StatusTooManyRequests: "; ask again in a minute",
}

// where is the control plane that is asked.
func (e *Env) where() string {
	if e.remote() {
		return e.Server
	}
	return e.Socket
}

func (e *Env) remote() bool { return e.Server != "" }

// transport returns the destination of requests, and the way.
func (e *Env) transport() (*url.URL, *http.Transport, error) {
	if !e.remote() {
		return &url.URL{Scheme: "http", Host: "isthmus"}, &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", e.Socket)
			},
		}, nil
	}
	u, err := url.Parse(e.Server)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" ||
		strings.Trim(u.Path, "/") != "" || u.User != nil {
		return nil, nil, Usage("--server %q: https://HOST:PORT is needed", e.Server)
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil, nil, Usage("--server %s: a token is sent by plain HTTP to this machine alone; use https",
			e.Server)
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	switch {
	case e.Fingerprint != "":
		want := strings.ToLower(strings.ReplaceAll(e.Fingerprint, ":", ""))
		// The certificate itself is pinned: signatures and names add nothing.
		secure.InsecureSkipVerify = true
		secure.VerifyConnection = func(s tls.ConnectionState) error {
			if got := auth.Fingerprint(s.PeerCertificates[0].Raw); got != want {
				return fmt.Errorf("its certificate has the fingerprint %s, not that of "+
					"--fingerprint; the control plane's log has the right one: "+
					"journalctl -u isthmus | grep fingerprint", got)
			}
			return nil
		}
	case e.CA != "":
		pem, err := os.ReadFile(e.CA)
		secure.RootCAs = x509.NewCertPool()
		if err == nil && !secure.RootCAs.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("%s: no certificate in PEM", e.CA)
		}
		if err != nil {
			return nil, nil, &Exit{Code: ExitUsage, Err: err}
		}
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host},
		&http.Transport{DisableKeepAlives: true, TLSClientConfig: secure,
			Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// token is that of the file, or of the environment; empty: none.
func (e *Env) token() (string, error) {
	if e.TokenFile == "" {
		return os.Getenv("ISTHMUS_TOKEN"), nil
	}
	data, err := os.ReadFile(e.TokenFile)
	if err != nil {
		return "", &Exit{Code: ExitUsage, Err: err}
	}
	return strings.TrimSpace(string(data)), nil
}

// unreachable explains why no control plane answered and what to do.
func (e *Env) unreachable(err error) error {
	hint := err.Error()
	var unknown *tls.CertificateVerificationError
	var whole *url.Error
	var way *net.OpError
	switch {
	case errors.As(err, &unknown):
		hint = fmt.Sprintf("%v; name its authority with --ca, or itself with --fingerprint, "+
			"which the control plane's log has", unknown.Err)
	case errors.Is(err, context.DeadlineExceeded):
		hint = "it does not answer in time; isthmus support makes an archive for a bug report"
	case e.remote():
		if errors.As(err, &whole) {
			hint = whole.Err.Error()
		}
		if errors.As(err, &way) && way.Op == "dial" {
			hint += "; there, control.api names the address, and a firewall must let its port pass"
		}
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
		hint = "it is not running there; start it with `isthmus run -c FILE`, or name its socket with --socket"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		hint = "permission denied; run as root or as a member of the socket's group"
	}
	return &Exit{Code: ExitUnreachable, Err: fmt.Errorf("no control plane at %s: %s", e.where(), hint)}
}
