// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// silent is a control plane that answers nothing until it is released, and then that it is not to be had.
func silent(t *testing.T) (socket string, release func()) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	testkit.Must(t, err)
	released := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-released
		w.WriteHeader(http.StatusUnprocessableEntity)
	}))
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	return socket, func() { close(released) }
}

// waiting is a command that waits for a silent control plane.
type waiting struct {
	args, bar string
	screen    func() string
	release   func()
	ended     chan struct{}
}

func (w *waiting) start(t *testing.T) {
	socket, release := silent(t)
	keys, terminal := testkit.Pty(t)
	w.screen, w.release, w.ended = testkit.Screen(keys), release, make(chan struct{})
	words := append([]string{"--socket", socket}, strings.Fields(strings.Replace(w.args, "DIR", t.TempDir(), 1))...)
	go func() {
		defer close(w.ended)
		Main(words, strings.NewReader(""), terminal, terminal)
	}()
}

// Whatever waits for the control plane says so after two seconds, and takes that away again.
func TestBars(t *testing.T) {
	list := []*waiting{
		{args: "trace --ue 10.45.0.7", bar: "isthmus trace                [##"},
		{args: "capture --for 20s -w DIR/ue.pcapng", bar: "isthmus capture              [##"},
		{args: "explain --ue 10.45.0.7 --to 198.51.100.7:80", bar: "isthmus explain              2s"},
		{args: "support -o DIR/a.tar.gz", bar: "support                      2s"},
		{args: "doctor", bar: "doctor                       2s"},
		{args: "drain", bar: "isthmus drain                2s"},
		{args: "clear subscriber anna", bar: "isthmus clear subscriber     2s"},
		{args: "show port", bar: "show port                    2s"},
		{args: "config apply", bar: "config apply                 2s"},
		{args: "status --wait 4s", bar: "status                       [###"},
	}
	for _, w := range list {
		w.start(t)
	}
	for _, w := range list {
		testkit.Until(t, w.args, func() bool { return strings.Contains(w.screen(), w.bar) })
		w.release()
		<-w.ended
		testkit.Until(t, "no bar of "+w.args, func() bool {
			all := w.screen()
			return strings.Contains(all[strings.LastIndex(all, w.bar):], "\x1b[K")
		})
	}
}
