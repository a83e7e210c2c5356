// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/httpd"
	"isthmus/controlplane/testkit"
)

// served is an agent that serves its API on a loopback address.
type served struct {
	*Agent
	address       string
	read, operate string // tokens
	log           *lines
}

// lines is a log that tests read while it is written.
type lines struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.text.String()
}

// freeTCP is a port that is free at the moment.
func freeTCP(t *testing.T) netip.AddrPort {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.Must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func serveAPI(t *testing.T, more string, page bool) *served {
	t.Helper()
	s, dir := dptest.Start(t), t.TempDir()
	out := &served{address: freeTCP(t).String(), log: &lines{}}
	read, one := auth.Make()
	operate, two := auth.Make()
	out.read, out.operate = read, operate
	text := small + fmt.Sprintf("control:\n  page: %v\n  api:\n    listen: ['%s']\n    tokens:\n"+
		"      - {name: noc, role: read, sha256: %s}\n      - {name: admin, role: operate, sha256: %s}\n%s",
		page, out.address, hex.EncodeToString(one[:]), hex.EncodeToString(two[:]), more)
	plan, err := plan.Make("small.yaml", []byte(text))
	testkit.Must(t, err)
	opt := outside(s, dir)
	opt.State, opt.Log = dir, slog.New(slog.NewTextHandler(out.log, nil))
	out.Agent = made(t, opt, plan)
	testkit.Run(t, func(ctx context.Context) error { return out.Serve(ctx) })
	testkit.Until(t, "ready", ready(out.Agent))
	return out
}

// client trusts any certificate.
func client() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true}}
}

func (s *served) ask(t *testing.T, c *http.Client, method, path, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, "https://"+s.address+path, strings.NewReader(body))
	testkit.Must(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "application/yaml")
	res, err := c.Do(r)
	testkit.Must(t, err)
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	testkit.Must(t, err)
	testkit.Equal(t, res.ProtoMajor, 2, "version of HTTP")
	return res.StatusCode, string(said)
}

func TestAPIByTCP(t *testing.T) {
	s := serveAPI(t, "", true)
	c := client()
	for _, test := range []struct {
		method, path, token string
		code                int
		want                string
	}{
		{"GET", "/v1/status", "", 401, "a token is needed"},
		{"GET", "/v1/status", "isthmus_no", 401, "not known"},
		{"GET", "/v1/status", s.read, 200, `"data_plane":"ready"`},
		{"GET", "/v1/show/port?limit=1", s.read, 200, "[]"},
		{"GET", "/v1/whoami", s.read, 200, `{"role":"read","token":"noc"}`},
		{"POST", "/v1/config/apply", s.read, 403, "the role read may not"},
		{"POST", "/v1/trace", s.read, 403, "the role read may not"},
		{"POST", "/v1/config/apply?name=a.yaml", s.operate, 422, "a.yaml:1"},
		{"GET", "/v1/openapi.json", "", 200, "3.1.0"},
		{"GET", "/v1/nothing", s.read, 404, "no such request"},
		{"GET", "/v1/%2e%2e/%2e%2e/etc/passwd", s.read, 404, ""},
		{"GET", "/", "", 200, "<html"},
		{"GET", "/assets/stream.js", "", 200, "EventSource"},
		{"GET", "/assets/../page/table/route", "", 401, ""}, // the mux cleans the path first
		{"GET", "/page/table/route", "", 401, "a token is needed"},
		{"GET", "/page/table/route", s.read, 200, "rows"},
		{"POST", "/", "", 401, ""},
		{"GET", "/page/trace?session=x", "", 401, "a token is needed"},
		{"GET", "/page/trace?session=x", s.read, 403, "the role read may not"},
		{"GET", "/page/trace?session=x", s.operate, 200, "event: bye"},
	} {
		code, said := s.ask(t, c, test.method, test.path, test.token, "x: y")
		testkit.ErrorIf(t, code != test.code || !strings.Contains(said, test.want), "%s %s: %d %s",
			test.method, test.path, code, said)
	}
	refused := told(t, s.Agent, "config.refused")
	testkit.ErrorIf(t, len(refused) != 1 || refused[0].Who.Token != "admin" ||
		!strings.HasPrefix(refused[0].Who.Address, "127.0.0.1:"),
		"%+v", refused)
	testkit.ErrorIf(t, len(told(t, s.Agent, "access.refused")) == 0, "a bad token is not told of")
	testkit.ErrorIf(t, !strings.Contains(s.log.String(), "fingerprint="), "the fingerprint is not logged")
}

// Tokens removed from the configuration are invalid at once.
func TestTokensFollowTheConfiguration(t *testing.T) {
	s := serveAPI(t, "", false)
	stream, err := http.NewRequest("GET", "https://"+s.address+"/v1/events", nil)
	testkit.Must(t, err)
	stream.Header.Set("Authorization", "Bearer "+s.read)
	stream.Header.Set("Accept", "text/event-stream")
	followed, err := client().Do(stream)
	testkit.Must(t, err)
	defer followed.Body.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, followed.Body)
		ended <- err
	}()
	plan, err := plan.Make("x", []byte(strings.Replace(string(s.owner.Plan().Text), "name: noc, role: read",
		"name: noc, role: operate", 1)))
	testkit.Must(t, err)
	_, err = s.owner.Apply(t.Context(), plan)
	testkit.Must(t, err)
	code, said := s.ask(t, client(), "POST", "/v1/config/apply?name=a.yaml", s.read, "x: y")
	testkit.ErrorIf(t, code != 422, "%d %s", code, said)
	code, said = s.ask(t, client(), "GET", "/", "", "")
	testkit.ErrorIf(t, code != 404 || !strings.Contains(said, "no page"), "%d %s", code, said)
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("a stream outlives its token")
	}
}

// A thousand idle, half or non-TLS connections: one address's are bounded, the control plane answers, and all is freed.
func TestThousandConnections(t *testing.T) {
	s := serveAPI(t, "", false)
	before, started := memory(), runtime.NumGoroutine()
	var open []net.Conn
	for i := range 1000 {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			continue // the kernel's queue is full
		}
		open = append(open, c)
		switch i % 3 {
		case 1:
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n")
		case 2:
			c.Write([]byte{22, 3, 1, 2, 0, 1})
		}
	}
	var api *httpd.Listener
	for _, l := range s.listeners {
		if l.Name == "api" {
			api = l
		}
	}
	// Connections without TLS release their places at once.
	testkit.Until(t, "most are refused", func() bool { return api.Refused() >= uint64(len(open)/2) })
	testkit.Equal(t, s.owner.Status().DataPlane, v1.StateReady, "state")
	grown := memory() - before
	testkit.ErrorIf(t, grown > 8<<20, "%d KiB more in use", grown>>10)
	for _, c := range open {
		c.Close()
	}
	testkit.Until(t, "all given back", func() bool { return runtime.NumGoroutine() <= started+5 })
	// The kernel's queue may still have connections of before, which take places until their end is read.
	testkit.Until(t, "it answers again", func() bool {
		req, err := http.NewRequest("GET", "https://"+s.address+"/v1/status", nil)
		testkit.Must(t, err)
		req.Header.Set("Authorization", "Bearer "+s.read)
		res, err := client().Do(req)
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// Enormous heads, queries and bodies are refused with a reason.
func TestEnormousRequests(t *testing.T) {
	s := serveAPI(t, "    tls: off\n", false)
	send := func(head string, body io.Reader) string {
		c, err := net.Dial("tcp", s.address)
		testkit.Must(t, err)
		c.SetDeadline(time.Now().Add(30 * time.Second))
		sent := make(chan bool)
		defer func() { c.Close(); <-sent }()
		go func() {
			defer close(sent)
			io.WriteString(c, head)
			if body != nil {
				io.Copy(c, body) // until the other end closes
			}
		}()
		answer, _ := io.ReadAll(io.LimitReader(c, 1<<16))
		return string(answer)
	}
	host := "Host: " + s.address + "\r\nAuthorization: Bearer " + s.operate + "\r\nConnection: close\r\n"
	for _, test := range []struct{ name, head, want string }{
		{"a long path", "GET /v1/" + strings.Repeat("x", 100<<10) + " HTTP/1.1\r\n" + host + "\r\n", " 431 "},
		{"many headers", "GET /v1/status HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", 50_000) + "\r\n", " 431 "},
		{"many conditions", "GET /v1/show/port?" + strings.Repeat("name=a*&", 1000) + " HTTP/1.1\r\n" + host +
			"\r\n", "more than 8 conditions"},
		{"a long condition", "GET /v1/show/port?name=" + strings.Repeat("a", 9000) + " HTTP/1.1\r\n" + host +
			"\r\n", "more than 128 bytes"},
		{"no HTTP", strings.Repeat("\x00", 70_000), " 431 "},
		{"two lengths", "POST /v1/stream HTTP/1.1\r\n" + host +
			"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", " 400 "},
	} {
		got := send(test.head, nil)
		testkit.ErrorIf(t, !strings.Contains(got, test.want), "%s: %.200q", test.name, got)
	}
	post := "POST /v1/stream HTTP/1.1\r\n" + host +
		"Content-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n"
	endless := &counted{fill: '['}
	got := send(post, io.LimitReader(endless, 1<<30))
	testkit.ErrorIf(t, !strings.Contains(got, " 422 ") && got != "" || endless.read > 80<<20,
		"1 GB: %.100q after %d MiB", got, endless.read>>20)
	code, _ := 0, ""
	res, err := http.Get("http://" + s.address + "/v1/whoami")
	testkit.Must(t, err)
	code = res.StatusCode
	res.Body.Close()
	testkit.Equal(t, code, 200, "afterwards")
}
