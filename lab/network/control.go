// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"isthmus/controlplane/httpd"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/view"
)

func fields(s string) []string { return strings.Fields(s) }

// Show is the output of `isthmus lab show`.
type Show struct {
	Generation string     `json:"generation"`
	Seconds    float64    `json:"seconds"` // since the start
	Folder     string     `json:"folder"`
	Functions  []ShowFunc `json:"functions"`
	UEs        int        `json:"ues"`
	Notified   uint64     `json:"notified"` // reports that packets wait
	Pages      uint64     `json:"pages"`    // idle UEs brought back for them
	Handovers  uint64     `json:"handovers"`
	Repairs    uint64     `json:"repairs"` // after error indications
	Sessions   []ShowUE   `json:"sessions"`
	Problems   []string   `json:"problems"`
}

// ShowFunc is one function.
type ShowFunc struct {
	Name       string `json:"name"`
	Title      string `json:"title"`
	Namespace  string `json:"namespace"`
	N4         string `json:"n4"`
	Controller string `json:"controller"`
	Node       string `json:"node_id"`
	Associated bool   `json:"associated"`
	Sessions   int    `json:"sessions"`
	Socket     string `json:"socket"` // for isthmus --socket
	Config     string `json:"config"`
}

// ShowUE is one UE.
type ShowUE struct {
	UE            int       `json:"ue"`
	IPv4          string    `json:"ipv4"`
	IPv6          string    `json:"ipv6"`
	Radio         string    `json:"radio"` // empty: idle
	Hops          []ShowHop `json:"hops"`
	UplinkBytes   uint64    `json:"uplink_bytes"` // as the anchor reported them
	DownlinkBytes uint64    `json:"downlink_bytes"`
}

// ShowHop is a UE's session at one function.
type ShowHop struct {
	Node     string `json:"node"`
	CPSEID   uint64 `json:"cp_seid"`
	UPSEID   uint64 `json:"up_seid"`
	Uplink   string `json:"uplink_fteid"` // empty: IP
	Downlink string `json:"downlink_fteid"`
}

// show gathers it. Usage is queried at the anchors of the UEs shown.
func (l *Lab) show(ctx context.Context, limit int) *Show {
	problems := l.noted()
	l.mu.Lock()
	s := &Show{
		Generation: l.opt.Generation, Seconds: time.Since(l.started).Seconds(), Folder: l.opt.Dir, UEs: len(l.bearers),
		Notified: l.network.Notified.Load(), Pages: l.network.Pages.Load(),
		Handovers: l.network.Handovers.Load(), Repairs: l.network.Repairs.Load(),
		Problems: problems, Sessions: []ShowUE{},
	}
	bearers := l.bearers[:min(limit, len(l.bearers))]
	for _, f := range l.top.functions {
		row := ShowFunc{
			Name: f.name, Title: f.title, Namespace: Prefix + f.name, N4: f.n4.String(),
			Controller: l.top.cores[f.core].title,
			Socket:     filepath.Join(l.folder(f), "isthmus.sock"), Config: filepath.Join(l.folder(f), "isthmus.yaml"),
		}
		if a := l.assocs[f.name]; a != nil {
			row.Node, row.Associated, row.Sessions = a.ID, a.Alive(), a.Sessions()
		}
		s.Functions = append(s.Functions, row)
	}
	l.mu.Unlock()
	for i, b := range bearers {
		row := ShowUE{UE: i + 1, IPv4: b.UE.IPv4.String(), IPv6: b.UE.IPv6.String()}
		if a := b.Anchored(); a != nil {
			a.Modify(ctx, &pfcp.SessionModificationRequest{QueryAll: true})
			for _, u := range a.Usage() {
				row.UplinkBytes, row.DownlinkBytes = row.UplinkBytes+u.Uplink, row.DownlinkBytes+u.Downlink
			}
		}
		state := b.State()
		row.Radio = state.Radio
		for _, one := range state.Sessions {
			hop := ShowHop{Node: one.Association.ID, CPSEID: one.CP.SEID, UPSEID: one.UP().SEID}
			hop.Uplink, hop.Downlink = fteid(one.FTEID(1)), fteid(one.FTEID(2))
			row.Hops = append(row.Hops, hop)
		}
		s.Sessions = append(s.Sessions, row)
	}
	return s
}

func fteid(f pfcp.FTEID, err error) string {
	if err != nil {
		return ""
	}
	addr := f.IPv4
	if !addr.IsValid() {
		addr = f.IPv6
	}
	return fmt.Sprintf("%s/0x%08x", addr, f.TEID)
}

const controlSocket = "lab.sock"

// serveControl answers `isthmus lab show` and its like on a socket in the lab's folder.
func (l *Lab) serveControl(context.Context) error {
	path := filepath.Join(l.opt.Dir, controlSocket)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		listener.Close()
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/show", func(w http.ResponseWriter, r *http.Request) {
		limit, err := strconv.Atoi(r.FormValue("limit"))
		if err != nil || limit < 0 {
			http.Error(w, "limit is no number", http.StatusBadRequest)
			return
		}
		json.NewEncoder(w).Encode(l.show(r.Context(), limit))
	})
	for path, do := range map[string]func(context.Context, int) (string, error){
		"handover": l.Handover, "idle": l.Idle, "wake": l.Wake,
	} {
		mux.HandleFunc("POST /v1/"+path, func(w http.ResponseWriter, r *http.Request) {
			ue, err := strconv.Atoi(r.FormValue("ue"))
			text := ""
			if err == nil {
				text, err = do(r.Context(), ue)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusUnprocessableEntity)
				return
			}
			fmt.Fprintln(w, text)
		})
	}
	bounds := httpd.Bounds{Name: "lab", Connections: 16, Read: 10 * time.Second, Write: time.Minute}
	server := bounds.New(mux)
	l.closers = append(l.closers, server)
	go server.Serve(bounds.Limit(listener))
	return nil
}

// Ask sends a request to the lab that runs in dir.
func Ask(ctx context.Context, dir, method, path string) ([]byte, error) {
	b, err := get(ctx, filepath.Join(dir, controlSocket), method, path)
	return b, absent(dir, err)
}

// Running is nil when a lab runs in dir.
func Running(dir string) error {
	conn, err := net.Dial("unix", filepath.Join(dir, controlSocket))
	if err == nil {
		conn.Close()
	}
	return absent(dir, err)
}

// absent says in words that no lab answers in dir.
func absent(dir string, err error) error {
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("no lab is running in %s; start one: isthmus lab 4g, 5g, home or isp. "+
			"--dir is that of its start", dir)
	}
	return err
}

// printHome: there is no UE and no PFCP.
func (s *Show) printHome(w io.Writer) error {
	fmt.Fprintf(w, "lab home, up for %.0f s, files in %s\n\n", s.Seconds, s.Folder)
	for i := range s.Functions {
		f := &s.Functions[i]
		fmt.Fprintf(w, "%s in %s: isthmus --socket %s show subscriber\n", f.Title, f.Namespace, f.Socket)
	}
	for _, p := range s.Problems {
		fmt.Fprintln(w, "problem:", p)
	}
	return nil
}

// Print writes Show as tables.
func (s *Show) Print(w io.Writer) error {
	if s.Generation == "home" {
		return s.printHome(w)
	}
	fmt.Fprintf(w, "lab %s, up for %.0f s, files in %s; %d UEs, %d pages, %d handovers, %d repairs\n\n", s.Generation,
		s.Seconds,
		s.Folder, s.UEs, s.Pages, s.Handovers, s.Repairs)
	var cells [][]string
	for i := range s.Functions {
		f := &s.Functions[i]
		state := "yes"
		if !f.Associated {
			state = "no"
		}
		cells = append(cells, []string{f.Name, f.Title, f.Namespace, f.N4, f.Controller, state,
			strconv.Itoa(f.Sessions), f.Socket})
	}
	err := view.WriteTable(w, []string{"FUNCTION", "TYPE", "NAMESPACE", "N4", "CONTROLLER", "ASSOCIATED", "SESSIONS",
		"SOCKET"},
		[]bool{6: true, 7: false}, cells)
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	cells = nil
	for i := range s.Sessions {
		u := &s.Sessions[i]
		for n, h := range u.Hops {
			node, seid := strings.TrimSuffix(h.Node, ".lab"), fmt.Sprintf("0x%x", h.UPSEID)
			row := []string{"", "", "", "", node, seid, h.Uplink, h.Downlink, "", ""}
			if n == 0 {
				row[0], row[1], row[2], row[3] = strconv.Itoa(u.UE), u.IPv4, u.IPv6, u.Radio
				if u.Radio == "" {
					row[3] = "idle"
				}
			}
			if n == len(u.Hops)-1 {
				row[8], row[9] = strconv.FormatUint(u.UplinkBytes, 10), strconv.FormatUint(u.DownlinkBytes, 10)
			}
			cells = append(cells, row)
		}
	}
	titles := []string{
		"UE", "IPV4", "IPV6", "RADIO", "HOP", "UP SEID", "UPLINK F-TEID", "DOWNLINK F-TEID", "UP BYTES", "DOWN BYTES",
	}
	err = view.WriteTable(w, titles, []bool{true, false, false, false, false, false, false, false, true, true}, cells)
	if err != nil {
		return err
	}
	if more := s.UEs - len(s.Sessions); more > 0 {
		fmt.Fprintf(w, "and %d more; --limit N shows them\n", more)
	}
	for _, p := range s.Problems {
		fmt.Fprintln(w, "problem:", p)
	}
	return nil
}

// Hints are what a user may type next, as this shell finds the program and the lab's folder.
func (l *Lab) Hints() string {
	program := l.program
	if found, err := exec.LookPath("isthmus"); err == nil && found == l.program {
		program = "isthmus"
	}
	lab := program + " lab "
	if l.opt.Dir != DefaultDir {
		lab += "--dir " + l.opt.Dir + " "
	}
	return strings.NewReplacer("sudo isthmus lab ", "sudo "+lab, "`isthmus lab ", "`"+lab,
		"sudo isthmus ", "sudo "+program+" ").Replace(l.hints())
}

func (l *Lab) hints() string {
	ue, w := "  sudo isthmus lab exec ue ", generations[l.opt.Generation]
	anchor := l.top.functions[len(l.top.functions)-1]
	b := &strings.Builder{}
	switch l.opt.Generation {
	case "isp":
		return l.ispHints()
	case "home":
		return l.signInHints()
	}
	fmt.Fprintf(b, "\nIn another terminal (`isthmus lab exec ue` is `ip netns exec %sue`):\n", Prefix)
	fmt.Fprintf(b, "%sping %s\n%sping %s\n%scurl http://www.lab/\n%sdig +short AAAA www.lab\n", ue, serverIPv4, ue,
		serverIPv6, ue, ue)
	if l.hasIperf() {
		fmt.Fprintf(b, "%siperf3 -c %s\n%siperf3 -c %s -R\n", ue, serverIPv4, ue, serverIPv6)
	}
	if l.opt.N9 {
		relay := l.top.functions[len(l.network.Radios)].name
		fmt.Fprintf(b, "%scurl http://edge.lab/        # the uplink classifier takes it out at %s\n", ue, relay)
	}
	fmt.Fprintf(b, "  sudo isthmus lab exec %s ping %s\n", w.pdn, ueAddresses(1).IPv4)
	fmt.Fprintf(b, "  sudo isthmus lab exec cp tcpdump -ni any udp port 8805\n")
	fmt.Fprintf(b, "  sudo isthmus lab show\n")
	if l.opt.Handover {
		fmt.Fprintf(b, "  sudo isthmus lab handover 1\n")
	}
	fmt.Fprintf(b, "  sudo isthmus lab idle 1             # then ping the UE from %s\n", w.pdn)
	fmt.Fprintf(b, "  sudo isthmus --socket %s/isthmus.sock show session\n", l.folder(anchor))
	return b.String()
}
