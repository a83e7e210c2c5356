// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"isthmus/controlplane/internal/metrics"
)

// Serve runs the agent with its socket and metrics until ctx ends or a signal asks to stop. SIGTERM leaves a data plane
// that we started running (a restart of the control plane shall not stop traffic); SIGINT, Ctrl-C at a terminal, ends it.
func (a *Agent) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listener, err := listen(a.opt.Socket)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: a.Handler(), ReadHeaderTimeout: 5 * time.Second}
	defer server.Close()
	fail := make(chan error, 2)
	go func() { fail <- server.Serve(listener) }()

	if addr := a.opt.Metrics; addr != "" && addr != "off" {
		m, err := metrics.Listen(addr, a.opt.MetricsPublic)
		if err != nil {
			return err
		}
		exporter := &http.Server{Handler: metrics.Handler(a.Snapshot, a.opt.Version), ReadHeaderTimeout: 5 * time.Second}
		defer exporter.Close()
		go func() { fail <- exporter.Serve(m) }()
		a.log.Info("metrics", "address", "http://"+m.Addr().String()+"/metrics")
	}

	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(stop)

	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, hangup) }()
	a.log.Info("control plane ready", "socket", a.opt.Socket, "file", a.opt.File, "objects", a.Status().Objects)
	notify("READY=1")
	defer notify("STOPPING=1")
	select {
	case sig := <-stop:
		a.log.Info("stopping", "signal", sig.String())
		pid := 0
		if sig == syscall.SIGINT && a.spawns() {
			pid = int(a.Status().DPPID)
		}
		cancel()
		<-done
		if pid > 0 {
			syscall.Kill(pid, syscall.SIGTERM)
		}
		return nil
	case err := <-fail:
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		cancel()
		<-done
		return err
	case err := <-done:
		return err
	}
}

// spawns tells that the data plane is ours to start and stop.
func (a *Agent) spawns() bool { return a.opt.Restart == "always" || a.opt.Restart == "never" }

// notify tells systemd how we are (sd_notify); it does nothing outside of systemd.
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
