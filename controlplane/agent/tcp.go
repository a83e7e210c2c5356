// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"isthmus/controlplane/agent/serve"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/config"
	"isthmus/controlplane/httpd"
	"isthmus/controlplane/page"
)

// apiBounds: a browser keeps six connections to a host open, or one of HTTP/2.
var apiBounds = httpd.Bounds{Name: "api", Connections: 128, Each: 32, Read: time.Minute, Write: 2 * time.Minute}

// tlsConfig is nil for plain HTTP. A certificate of our own is made once, and stays.
func (a *Agent) tlsConfig(c *config.API) (*tls.Config, error) {
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
	if time.Now().After(cert.Leaf.NotAfter) { // its clients refuse it; all else works
		a.opt.Log.Error("the certificate of control.api has ended", "file", certFile)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}

// listenTCP opens the addresses of control.api.
func (a *Agent) listenTCP(open func(net.Listener, *http.Server)) error {
	c := &a.owner.Plan().Control
	addresses := c.API.Addresses()
	if len(addresses) == 0 {
		return nil
	}
	secure, err := a.tlsConfig(&c.API)
	if err != nil {
		return err
	}
	var live http.Handler
	if c.Page {
		a.page = page.New(serve.Source{API: a.api}, page.Options{Log: a.opt.Log, Trace: a.api.Tracer.Text,
			SignIns: a.measures.SignIns})
		live = a.page.Handler()
	}
	handler := a.api.TCP(live)
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
