// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"isthmus/controlplane/httpd"
)

// maxAnswer bounds what is read from a socket of ours.
const maxAnswer = 64 << 20

// Limits of UEs at the servers behind the gateway. Transfers are as long as a measurement.
var (
	webBounds  = httpd.Bounds{Name: "web", Connections: 1024, Read: time.Hour, Write: time.Hour}
	nameBounds = httpd.Bounds{Name: "names", Connections: 256}
)

func readAll(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, maxAnswer)) }

// startServers runs what UEs may talk to: HTTP, DNS, iperf3 where it is installed.
func (l *Lab) startServers(context.Context) error {
	w := generations[l.opt.Generation]
	names := zone{
		"www.lab": {serverIPv4, serverIPv6}, "iperf.lab": {serverIPv4, serverIPv6}, "ns.lab": {serverIPv4, serverIPv6},
		"ipv4.lab": {serverIPv4}, "ipv6.lab": {serverIPv6}, "ue.lab": {ueAddresses(1).IPv4, host(ueAddresses(1).IPv6)},
	}
	if l.opt.N9 {
		names["edge.lab"] = []netip.Addr{edgeIPv4}
		if err := l.serveHTTP("edge", "edge"); err != nil {
			return err
		}
	}
	if err := l.serveHTTP(w.pdn, w.pdn); err != nil {
		return err
	}
	for _, a := range []netip.Addr{serverIPv4, serverIPv6} {
		at := netip.AddrPortFrom(a, 53).String()
		err := inside(w.pdn, func() error {
			p, err := net.ListenPacket("udp", at)
			if err != nil {
				return err
			}
			l.closers = append(l.closers, p)
			go names.servePackets(p)
			s, err := net.Listen("tcp", at)
			if err != nil {
				return err
			}
			l.closers = append(l.closers, s)
			go names.serveStreams(nameBounds.Limit(s))
			return nil
		})
		if err != nil {
			return fmt.Errorf("name server: %w", err)
		}
	}
	if !l.hasIperf() {
		return nil
	}
	return l.spawn(w.pdn, "iperf3", filepath.Join(l.opt.Dir, "iperf3.log"), true, "iperf3", "--server", "--forceflush")
}

func (l *Lab) hasIperf() bool {
	_, err := exec.LookPath("iperf3")
	return err == nil
}

// serveHTTP serves on port 80 of a node: / returns the client's address, /bytes/N sends N bytes, POST /count counts the
// body.
func (l *Lab) serveHTTP(node, name string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "Hello %s, this is the server in %s%s.\n", r.RemoteAddr, Prefix, name)
	})
	mux.HandleFunc("GET /bytes/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.ParseInt(r.PathValue("n"), 10, 64)
		if err != nil || n < 0 {
			http.Error(w, "no number of bytes", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
		io.CopyN(w, zeros{}, n)
	})
	mux.HandleFunc("POST /count", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintln(w, n)
	})
	return inside(node, func() error {
		listener, err := net.Listen("tcp", ":80")
		if err != nil {
			return err
		}
		server := webBounds.New(mux)
		l.closers = append(l.closers, server)
		go server.Serve(webBounds.Limit(listener))
		return nil
	})
}

// zeros is an endless source.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
