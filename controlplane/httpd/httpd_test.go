// SPDX-License-Identifier: Apache-2.0

package httpd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

const limit = time.Minute // of a test that would wait for ever

func start(t *testing.T, b Bounds, h http.HandlerFunc) *Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	bound, server := b.Limit(l), b.New(h)
	done := make(chan error, 1)
	go func() { done <- server.Serve(bound) }()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return bound
}

// client connects from an address of this machine.
func client(t *testing.T, l net.Listener, from string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(context.Background(), "tcp", l.Addr().String())
	testkit.Must(t, err)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(limit))
	return c
}

// ended waits until the server has closed the connection.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("the server keeps the connection: %v", err)
	}
}

// ask: a request was answered.
func ask(c net.Conn) bool {
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return false
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	io.Copy(io.Discard, res.Body)
	return res.StatusCode == http.StatusOK
}

func hello(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }

// waitInUse waits until at most n connections are in use.
func waitInUse(t *testing.T, l *Listener, n int, otherwise string) {
	t.Helper()
	testkit.Until(t, otherwise, func() bool { return l.inUse() <= n })
}

// A client that is silent, stops in the middle, stays idle, or does not read is disconnected.
func TestSlowClientsAreClosed(t *testing.T) {
	short := 50 * time.Millisecond
	endless := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			io.Copy(io.Discard, r.Body)
			hello(w, r)
			return
		}
		for b := make([]byte, 1<<20); ; {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}
	l := start(t, Bounds{Connections: 8, Read: 2 * short, Write: 2 * short, Header: short, Idle: short}, endless)
	for what, says := range map[string]string{
		"nothing": "", "half a header": "GET / HTTP/1.1\r\nHost:",
		"half a body": "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
		"one request": "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(what, func(t *testing.T) {
			c := client(t, l, "127.0.0.1")
			io.WriteString(c, says)
			ended(t, c)
		})
	}
	t.Run("does not read", func(t *testing.T) {
		c := client(t, l, "127.0.0.1")
		io.WriteString(c, "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
		waitInUse(t, l, 0, "the connection stays")
	})
}

// New sets the time-outs that the test above shortens.
func TestEveryTimeoutIsSet(t *testing.T) {
	s := Bounds{Read: time.Second, Write: time.Second}.New(http.NotFoundHandler())
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 ||
		s.MaxHeaderBytes <= 0 {
		t.Fatalf("a timeout is missing: %+v", s)
	}
}

// One address cannot take all places, and all together have a bound. A place is returned.
func TestConnectionsAreBounded(t *testing.T) {
	l := start(t, Bounds{Connections: 5, Each: 2, Read: limit, Write: limit}, hello)
	var greedy []net.Conn
	for range 20 {
		greedy = append(greedy, client(t, l, "127.0.0.1"))
	}
	for _, c := range greedy[2:] {
		ended(t, c)
	}
	got := l.Refused()
	testkit.FatalIf(t, got != 18, "%d refused, want 18", got)
	for _, from := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"} {
		testkit.FatalIf(t, !ask(client(t, l, from)), "%s is not served beside the greedy one", from)
	}
	newcomer := client(t, l, "127.0.0.5")
	testkit.FatalIf(t, !ask(newcomer), "the greedy one keeps a second place, and a newcomer has none")
	ended(t, greedy[0])
	if ended(t, client(t, l, "127.0.0.6")); l.Refused() != 20 {
		t.Fatalf("%d refused, want 20: six addresses of one connection each, and five places", l.Refused())
	}
	for _, c := range append(greedy, newcomer) {
		c.Close()
	}
	waitInUse(t, l, 3, "places are not given back")
	testkit.FatalIf(t, !ask(client(t, l, "127.0.0.1")), "not served after the places were given back")
}

func (l *Listener) inUse() int {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.open
}

// No other package serves HTTP, or an unbounded stream.
func TestNoOtherServers(t *testing.T) {
	look := func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			d.Name() == "httpd.go" {
			return err
		}
		text, err := os.ReadFile(path)
		for n, line := range strings.Split(string(text), "\n") {
			for _, bad := range []string{"http.Server{", "http.Serve(", "http.ListenAndServe", "Serve(listener)",
				"Serve(l)"} {
				testkit.ErrorIf(t, strings.Contains(line, bad),
					"%s:%d: %s: use httpd.Bounds", path, n+1, bad)
			}
		}
		return err
	}
	for _, top := range []string{"..", "../../lab"} {
		testkit.Must(t, filepath.WalkDir(top, look))
	}
}
