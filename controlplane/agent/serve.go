// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"isthmus/controlplane/auth"
	"isthmus/controlplane/httpd"
	"isthmus/controlplane/metrics"
)

// Limits of clients. A configuration may take the data plane a minute; scrapers come from a few addresses, a few times
// a minute.
var (
	controlBounds = httpd.Bounds{Name: "control", Connections: 64, Read: time.Minute, Write: 2 * time.Minute}
	metricsBounds = httpd.Bounds{Name: "metrics", Connections: 64, Each: 8, Read: 10 * time.Second,
		Write: 30 * time.Second}
)

// Serve runs the agent with its socket and metrics until ctx ends or a signal stops it. SIGTERM leaves our data plane
// running (a restart of the control plane must not stop traffic), unless the command line says otherwise. SIGINT,
// Ctrl-C at a terminal, ends it.
func (a *Agent) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	servers, err := a.listenAll()
	if err != nil {
		return err
	}
	if a.page != nil {
		go a.page.Run(ctx)
	}
	fail := make(chan error, len(servers))
	for i, server := range servers {
		defer server.Close()
		go func() { fail <- a.listeners[i].Serve(server) }()
	}

	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(stop)

	done := make(chan struct{})
	go func() { a.Run(ctx, hangup); close(done) }() // not after a panic: the process would end as if all were well
	a.opt.Log.Info("control plane ready", "socket", a.opt.Socket, "file", a.opt.File,
		"objects", a.owner.Status().Objects)
	notify("READY=1")
	defer notify("STOPPING=1")
	select {
	case sig := <-stop:
		a.opt.Log.Info("stopping", "signal", sig.String())
		a.events.Publish("control.stopping", a.opt.Version, "signal", sig.String())
		connected := int(a.owner.Status().DPPID)
		cancel()
		<-done
		a.leave(connected, sig == syscall.SIGINT || a.opt.StopBoth)
		return nil
	case err := <-fail:
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		cancel()
		<-done
		return err
	case <-done:
		return nil
	}
}

// listenAll opens the agent's own socket, the addresses of the API and of the metrics, and makes a server for each.
func (a *Agent) listenAll() (servers []*http.Server, err error) {
	open := func(b httpd.Bounds, l net.Listener, server *http.Server) {
		a.listeners = append(a.listeners, b.Limit(l))
		servers = append(servers, server)
	}
	defer func() {
		for i := range a.listeners {
			if err != nil {
				a.listeners[i].Close()
			}
		}
	}()
	listener, err := listen(a.opt.Socket)
	if err != nil {
		return nil, err
	}
	local := controlBounds.New(a.api.Handler())
	local.ConnContext = auth.Peer
	open(controlBounds, listener, local)
	if err := a.listenTCP(func(l net.Listener, s *http.Server) { open(apiBounds, l, s) }); err != nil {
		return nil, err
	}
	if addr := a.opt.Metrics; addr != "" && addr != "off" {
		m, err := metrics.Listen(addr, a.opt.MetricsPublic)
		if err != nil {
			return nil, err
		}
		open(metricsBounds, m, metricsBounds.New(a.scraped()))
		a.opt.Log.Info("metrics", "address", "http://"+m.Addr().String()+"/metrics")
	}
	return servers, nil
}

// scraped is what the metrics address serves: figures and probes.
func (a *Agent) scraped() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", metrics.Handler(a.scraper.Snapshot, a.opt.Version, a.measures))
	mux.HandleFunc("GET /livez", a.probes.Live)
	mux.HandleFunc("GET /readyz", a.probes.Ready)
	return mux
}

// leave stops a data plane of ours, or reports that it continues. After Run.
func (a *Agent) leave(connected int, both bool) {
	if a.spawner == nil {
		return
	}
	switch pid := a.spawner.Running(connected); {
	case pid == 0:
	case both:
		a.opt.Log.Info("stopping the data plane", "pid", pid)
		syscall.Kill(pid, syscall.SIGTERM)
	default:
		a.opt.Log.Warn("the data plane forwards on; SIGINT and --stop-both stop both", "pid", pid)
	}
}

// notify reports our state to systemd (sd_notify); outside of systemd it does nothing.
func notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	if path[0] == '@' {
		path = "\x00" + path[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	conn.Write([]byte(state))
}

// listen opens the agent's own socket, and replaces a dead agent's, never a living one's.
func listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		defer conn.Close()
		who := "another process"
		if cred, err := auth.Credentials(conn); err == nil && cred.Pid > 0 {
			who = fmt.Sprint("process ", cred.Pid)
		}
		return nil, fmt.Errorf("%s: another control plane is running there, %s: "+
			"stop it, or give this one a socket of its own (control.socket or --socket)", path, who)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o660); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}
