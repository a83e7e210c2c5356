// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/testkit"
)

func row(packet uint32, what uint8, ns uint64, node, text string) api.TraceRow {
	r := api.TraceRow{Packet: packet, What: what, Ns: ns, Length: uint16(len(text))}
	api.PutCString(r.Node[:], node)
	copy(r.Data[:], text)
	return r
}

// Rows of two workers come in whichever order the rings were read; a packet that the port dropped has two ends.
func TestAssemble(t *testing.T) {
	var a Assembler
	now := time.Now()
	left := row(7, api.TraceWhatWent, 40, "port-tx", "on n6")
	dropped := row(7, api.TraceWhatWent, 41, "drop", "port-tx-full: no room")
	left.Outcome, dropped.Outcome = api.TraceOutcomeLeft, api.TraceOutcomeDropped
	handed := row(7, api.TraceWhatWent, 20, "session-tunnel", "handed over")
	handed.Outcome = api.TraceOutcomeHanded
	received := row(7, api.TraceWhatData, 10, "port-rx", "frame")
	received.Of = api.TraceReceived
	a.Add([]api.TraceRow{row(7, api.TraceWhatStep, 30, "handover-rx", ""), left, dropped,
		row(7, api.TraceWhatEntered, 10, "port-rx", ""), received, received, handed}, now)
	testkit.Equal(t, len(a.Take(now, time.Second)), 0, "packets whose last row has just come")
	packets := a.Take(now.Add(time.Millisecond), time.Second)
	testkit.FatalIf(t, len(packets) != 1, "%d packets", len(packets))
	p := packets[0]
	testkit.Equal(t, p.Path(), "port-rx > session-tunnel > handover-rx > port-tx > drop", "path")
	testkit.Equal(t, p.Outcome+" "+p.Reason, "dropped port-tx-full", "outcome")
	testkit.Equal(t, string(p.Frames[0].Bytes), "frameframe", "bytes of two rows")
}

// An explanation is over when its packet's way has ended, however long its worker waits for a CPU.
func TestExplanationWaits(t *testing.T) {
	r := &run{q: &Query{Hypothetical: []byte{0}}}
	now := time.Now()
	hear := func(rows ...api.TraceRow) {
		r.a.Add(rows, now)
		r.quiet = 100
		now = now.Add(time.Minute)
		r.chosen(r.a.Take(now, time.Hour))
	}
	testkit.ErrorIf(t, r.over(&api.TraceState{}), "over before a worker took it")
	hear(row(1, api.TraceWhatEntered, 1, "port-rx", ""))
	testkit.ErrorIf(t, r.over(&api.TraceState{}), "over while it waits")
	end := row(1, api.TraceWhatWent, 2, "port-tx", "")
	end.Outcome = api.TraceOutcomeLeft
	hear(end)
	testkit.ErrorIf(t, !r.over(&api.TraceState{}), "not over when it left")
	testkit.ErrorIf(t, !(&run{q: r.q}).over(&api.TraceState{End: api.TraceEndTime}), "never over")
}

// What has no beginning or never ends is bounded.
func TestAssemblerIsBounded(t *testing.T) {
	var a Assembler
	now := time.Now()
	a.Add([]api.TraceRow{row(1, api.TraceWhatStep, 1, "drop", "")}, now)
	testkit.Equal(t, a.Lost, 1, "rows without a beginning")
	for i := range uint32(mostPackets + 10) {
		a.Add([]api.TraceRow{row(i, api.TraceWhatEntered, 1, "port-rx", "")}, now)
	}
	testkit.Equal(t, a.Lost, 11, "rows above the limit")
	for range 2 * mostRows {
		a.Add([]api.TraceRow{row(5, api.TraceWhatStep, 1, "ip-input", "")}, now)
	}
	packets := a.Take(now.Add(2*time.Second), time.Second)
	testkit.Equal(t, len(packets), mostPackets, "packets of which nothing was heard")
	testkit.Equal(t, len(packets[5].Steps), mostRows, "steps of a packet")
	testkit.Equal(t, packets[0].Outcome, "on its way", "outcome")
}

// The end of a packet says what becomes of it, by what leaves in its place too.
func TestConclusions(t *testing.T) {
	for _, c := range []struct {
		steps   string // NODE=TEXT, apart by |
		outcome uint16
		port    string
		want    string
	}{
		{"fragment-core=in 2 fragments|gtpu-encap=to 10.1.0.2, TEID 0x00000200|port-tx=164 bytes on n3",
			api.TraceOutcomeLeft, "n3",
			"sent on n3: 164 bytes; in 2 fragments; by GTP-U to 10.1.0.2, TEID 0x00000200"},
		{"ip-output=no route leads there|icmp-error=its sender is sent ICMP no route (type 3, code 0)",
			api.TraceOutcomeDropped, "", "dropped: its sender is sent ICMP no route (type 3, code 0)"},
		{"redirect=answered with 302|drop=redirect-answered: served", api.TraceOutcomeDropped, "",
			"dropped: redirect-answered: served; answered with 302"},
		{"punt=icmp: ICMP to us", api.TraceOutcomePunted, "", "punted: icmp: ICMP to us"},
		{"buffer=the packet waits for the UE", 0, "", "held: the packet waits for the UE"},
		{"scheduler=n6: pipe 3; it would be queued", 0, "", "queued: n6: pipe 3; it would be queued"},
		{"gtpu-control=answered with Echo Response", 0, "", "ended here: answered with Echo Response"},
		{"x=it would be given to x", 0, "", "not known: it would be given to x"},
	} {
		steps := strings.Split(c.steps, "|")
		rows := []api.TraceRow{row(1, api.TraceWhatEntered, 1, "port-rx", "")}
		for i, s := range steps {
			node, text, _ := strings.Cut(s, "=")
			r := row(1, api.TraceWhatStep, uint64(i+2), node, text)
			if i == len(steps)-1 {
				r.What, r.Outcome = api.TraceWhatWent, c.outcome
				api.PutCString(r.Port[:], c.port)
			}
			rows = append(rows, r)
		}
		p := assemble(1, rows)
		testkit.Equal(t, p.Conclusion, c.want, "the end")
		var b bytes.Buffer
		testkit.Must(t, p.WriteText(&b, false))
		testkit.ErrorIf(t, !strings.HasSuffix(b.String(), "\n  = "+c.want+"\n\n"), "%s", b.String())
	}
}

// A packet that becomes an ICMP error was lost: it ends a trace until a drop, and is among the dropped ones.
func TestICMPErrorsAreDrops(t *testing.T) {
	sent := Packet{Outcome: "sent", Steps: []Step{{Node: "ip-output"}}}
	lost := Packet{Outcome: "sent", Steps: []Step{{Node: "ip-output"}, {Node: "icmp-error"}, {Node: "port-tx"}}}
	for _, q := range []*Query{{UntilDrop: true}, {Drop: "any"}, {Drop: "any", UntilDrop: true}} {
		kept, all := (&run{q: q}).chosen([]Packet{sent, lost, sent})
		testkit.Equal(t, all, q.UntilDrop, "%+v: all", q)
		testkit.Equal(t, len(kept[len(kept)-1].Steps), 3, "%+v: steps of the last one", q)
	}
}

// Names that others chose do not move a terminal's cursor.
func TestTextIsClean(t *testing.T) {
	var b bytes.Buffer
	p := assemble(1, []api.TraceRow{row(1, api.TraceWhatStep, 1, "session-tunnel", "session \x1b[2Jevil\n\u009b")})
	testkit.Must(t, p.WriteText(&b, true))
	testkit.ErrorIf(t, strings.ContainsAny(b.String(), "\x1b\u009b"), "%q", b.String())
}

const small = "ports: [{name: n3}]\n"

func TestCaptureAndSplit(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.pcapng")
	var b bytes.Buffer
	at := time.Unix(1700000000, 123456789)
	macs := map[string]string{"n3": "02:00:00:00:00:03"}
	w, err := NewWriter(&b, "test", ConfigComment([]byte(small), macs, at), 128)
	testkit.Must(t, err)
	whole := make([]byte, 60)
	p := Packet{Port: "n3", OutPort: "n6", Outcome: "sent", Frames: []Frame{
		{Stage: "received", Time: at, Length: 60, Bytes: whole},
		{Stage: "inside", Time: at, Length: 3, Bytes: []byte("abc")},
		{Stage: "sent", Time: at, Length: 60, Bytes: whole}}}
	for i := range p.Frames {
		testkit.Must(t, w.Frame(&p, &p.Frames[i]))
	}
	testkit.Equal(t, w.Written, int64(b.Len()), "bytes written")
	testkit.Must(t, os.WriteFile(file, b.Bytes(), 0o600))
	config, in, err := Split(file, dir)
	testkit.Must(t, err)
	text, _ := os.ReadFile(config)
	testkit.Equal(t, string(text), "ports:\n    - mac: \"02:00:00:00:00:03\"\n      name: n3\n", "configuration")
	testkit.Equal(t, len(in), 1, "ports that received")
	pcap, _ := os.ReadFile(in["n3"])
	testkit.Equal(t, len(pcap), 24+16+60, "bytes of the pcap file")
	port := ""
	frame, err := FirstFrame(file, &port)
	testkit.Must(t, err)
	testkit.Equal(t, len(frame), 60, "first frame of %s", port)
}

// A capture has packets as they ended, and replay sends them as they came; a truncated packet is not replayed.
func TestReplayInOrder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.pcapng")
	write := func(frames ...Frame) {
		var b bytes.Buffer
		w, err := NewWriter(&b, "test", ConfigComment([]byte(small), nil, time.Unix(1, 0)), 128)
		testkit.Must(t, err)
		for i := range frames {
			testkit.Must(t, w.Frame(&Packet{Port: "n3"}, &frames[i]))
		}
		testkit.Must(t, os.WriteFile(file, b.Bytes(), 0o600))
	}
	late := Frame{Stage: "received", Time: time.Unix(9, 0), Length: 60, Bytes: bytes.Repeat([]byte{9}, 60)}
	early := Frame{Stage: "received", Time: time.Unix(8, 0), Length: 60, Bytes: bytes.Repeat([]byte{8}, 60)}
	write(late, early)
	_, in, err := Split(file, dir)
	testkit.Must(t, err)
	pcap, _ := os.ReadFile(in["n3"])
	testkit.Equal(t, pcap[24+16], byte(8), "the first frame")
	early.Length = 200
	write(late, early)
	_, _, err = Split(file, dir)
	testkit.Refused(t, err, "cut to 60 bytes")
}

// A damaged capture is refused, whatever is in it.
func FuzzReadFrames(f *testing.F) {
	var b bytes.Buffer
	w, _ := NewWriter(&b, "test", "x", 64)
	p := Packet{Port: "a", Frames: []Frame{{Stage: "received", Bytes: []byte("frame")}}}
	w.Frame(&p, &p.Frames[0])
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		ReadFrames(bytes.NewReader(data), func(string, time.Time, []byte) error { return nil })
		configOf(data)
	})
}

func TestQueryOrder(t *testing.T) {
	for want, q := range map[string]Query{
		"neither an address": {UE: "x"}, "is none of received": {Stages: []string{"x"}},
		"cannot be compiled": {Filter: "udp"}, "port": {Port: strings.Repeat("x", 40)},
	} {
		_, err := q.Order(t.Context(), nil, "/nonexistent")
		testkit.Refused(t, err, want)
	}
	q := Query{UE: "10.45.0.0/16", TEID: 5, Drop: "any", Count: 3, Seconds: 9}
	o, err := q.Order(t.Context(), nil, "")
	testkit.Must(t, err)
	testkit.Equal(t, len(o.Keys), 2, "keys")
	testkit.Equal(t, o.Want.Flags, uint32(api.TraceSteps|api.TraceLate), "flags")
	testkit.Equal(t, o.Want.Packets, 0, "packets: those that are dropped count")
}
