// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/httpd"
	"isthmus/controlplane/page"
)

// apiBounds: a browser keeps six connections to a host open, or one of HTTP/2.
var apiBounds = httpd.Bounds{Name: "api", Connections: 128, Each: 32, Read: time.Minute, Write: 2 * time.Minute}

// tcpHandler serves the API, and the page where there is one, to clients that show who they are.
func (a *Agent) tcpHandler(page http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/", a.api())
	mux.HandleFunc("POST "+auth.LoginPath, a.guard.Login)
	mux.HandleFunc("POST "+auth.LogoutPath, a.guard.Logout)
	if page == nil {
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			auth.Refuse(w, http.StatusNotFound,
				"there is no page here; the API is below /v1/, described in /v1/openapi.json")
		})
	} else {
		mux.Handle("/", openFiles(page))
	}
	return a.guard.Handler(mux)
}

// openFiles lets everybody have the page's files, which the binary holds and which say nothing of this gateway; what
// else is below the page needs the role read.
func openFiles(page http.Handler) http.Handler {
	closed := auth.Require(auth.Read, page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file := r.URL.Path == "/" || r.URL.Path == "/login" || strings.HasPrefix(r.URL.Path, "/assets/")
		if file && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			page.ServeHTTP(w, r)
			return
		}
		closed.ServeHTTP(w, r)
	})
}

// tlsConfig is nil where the configuration wants plain HTTP. A certificate of our own is made once, and stays.
func (a *Agent) tlsConfig(plan *plan.Plan) (*tls.Config, error) {
	c := &plan.Control.API
	if c.TLS == "off" {
		return nil, nil
	}
	certFile, keyFile, own := c.Certificate, c.Key, c.Certificate == ""
	if own {
		certFile, keyFile = a.opt.beside("api.crt"), a.opt.beside("api.key")
	}
	names := append([]string{"localhost"}, c.Hosts...)
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	for _, l := range c.Addresses() {
		names = append(names, l.Addr().String())
	}
	cert, err := auth.Certificate(certFile, keyFile, own, names)
	if err != nil {
		return nil, fmt.Errorf("control.api: %w", err)
	}
	a.opt.Log.Info("API certificate", "file", certFile, "fingerprint", auth.Fingerprint(cert.Leaf.Raw), "until",
		cert.Leaf.NotAfter)
	if time.Now().After(cert.Leaf.NotAfter) { // its clients say no; all else goes on
		a.opt.Log.Error("the certificate of control.api has ended", "file", certFile)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}

// listenTCP opens the addresses of control.api.
func (a *Agent) listenTCP(open func(net.Listener, *http.Server)) error {
	plan := a.owner.Plan()
	addresses := plan.Control.API.Addresses()
	if len(addresses) == 0 {
		return nil
	}
	secure, err := a.tlsConfig(plan)
	if err != nil {
		return err
	}
	var live http.Handler
	if plan.Control.Page {
		a.page = page.New(source{a}, page.Options{Log: a.opt.Log, Trace: a.traceText, SignIns: a.measures.SignIns})
		live = a.page.Handler()
	}
	handler := a.tcpHandler(live)
	scheme := "https://"
	if secure == nil {
		scheme = "http://"
	}
	for _, address := range addresses {
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(address))
		if err != nil {
			return fmt.Errorf("control.api.listen: %w", err)
		}
		server := apiBounds.New(handler)
		if secure != nil {
			server.TLSConfig = secure.Clone()
		}
		open(l, server)
		a.opt.Log.Info("API", "address", scheme+l.Addr().String())
	}
	return nil
}
