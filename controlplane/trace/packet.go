// SPDX-License-Identifier: Apache-2.0

// Package trace assembles the data plane's trace rows to packets: the way of each through the graph, by the stages'
// texts, and its bytes. It also requests traces, and writes them as text and as captures (pcapng).
package trace

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"isthmus/api"
)

// Step is a stage that a packet passed.
type Step struct {
	Node   string `json:"node"`
	Next   string `json:"next,omitempty"`
	Worker uint8  `json:"worker"`
	Ticks  uint32 `json:"ticks"` // per packet of the stage's vector
	Text   string `json:"text,omitempty"`
}

// Frame is what the packet was at a stage.
type Frame struct {
	Stage  string    `json:"stage"` // received, inside, sent
	Port   string    `json:"port,omitempty"`
	Time   time.Time `json:"time"`
	Length uint32    `json:"length"`
	Bytes  []byte    `json:"bytes"` // as many as the trace asked for
}

// Packet is one packet's way.
type Packet struct {
	Number  uint32    `json:"number"`
	Time    time.Time `json:"time"`
	Port    string    `json:"port"` // by which it came
	Length  uint32    `json:"length"`
	Steps   []Step    `json:"steps"`
	Outcome string    `json:"outcome"` // sent, dropped, punted, held, on its way
	OutPort string    `json:"out_port,omitempty"`
	Reason  string    `json:"reason,omitempty"` // name of the drop or punt reason
	Text    string    `json:"text,omitempty"`   // how it ended, in words
	Frames  []Frame   `json:"frames,omitempty"`

	Conclusion string `json:"conclusion"` // what becomes of it, in a sentence
}

var (
	outcomes = map[uint16]string{
		api.TraceOutcomeNowhere: "held", api.TraceOutcomeLeft: "sent", api.TraceOutcomeDropped: "dropped",
		api.TraceOutcomePunted: "punted",
		api.TraceOutcomeHanded: "handed over"}
	stages = map[uint16]string{api.TraceReceived: "received", api.TraceInside: "inside", api.TraceSent: "sent"}
)

// most rows of one packet and packets under way: what more there is was lost.
const (
	mostRows    = 256
	mostPackets = 16384
)

// pending is a packet whose way has not ended.
type pending struct {
	rows  []api.TraceRow
	order int
	seen  time.Time // when its last row came
	ended bool
}

// Assembler makes packets of rows. It belongs to one goroutine.
type Assembler struct {
	packets map[uint32]*pending
	order   int
	Lost    uint64 // rows without a beginning, or above the limits
	ready   []Packet
}

// Add takes the rows of a poll. One worker's follow another's there: what a packet's first worker said may stand
// behind.
func (a *Assembler) Add(rows []api.TraceRow, now time.Time) {
	slices.SortStableFunc(rows, func(x, y api.TraceRow) int { return cmp.Compare(x.Ns, y.Ns) })
	if a.packets == nil {
		a.packets = map[uint32]*pending{}
	}
	for _, row := range rows {
		p := a.packets[row.Packet]
		if row.What == api.TraceWhatEntered {
			if p != nil { // numbers come again
				a.finish(row.Packet, p)
			}
			if len(a.packets) >= mostPackets {
				a.Lost++
				continue
			}
			a.order++
			p = &pending{order: a.order}
			a.packets[row.Packet] = p
		}
		if p == nil || len(p.rows) == mostRows {
			a.Lost++
			continue
		}
		p.rows = append(p.rows, row)
		p.seen = now
		p.ended = p.ended || row.What == api.TraceWhatWent && row.Outcome != api.TraceOutcomeHanded
	}
}

// Waits: the way of some packet has not ended.
func (a *Assembler) Waits() bool {
	for _, p := range a.packets {
		if !p.ended {
			return true
		}
	}
	return false
}

// Take gives the packets whose way has ended, and those of which nothing was heard for `silence`, in the order of
// their beginning.
func (a *Assembler) Take(now time.Time, silence time.Duration) []Packet {
	var numbers []uint32
	for n, p := range a.packets {
		if p.ended && p.seen.Before(now) || now.Sub(p.seen) >= silence {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(x, y uint32) int { return cmp.Compare(a.packets[x].order, a.packets[y].order) })
	for _, n := range numbers {
		a.finish(n, a.packets[n])
	}
	ready := a.ready
	a.ready = nil
	return ready
}

func (a *Assembler) finish(number uint32, p *pending) {
	delete(a.packets, number)
	a.ready = append(a.ready, assemble(number, p.rows))
}

// assemble puts the rows of one packet together. Rows of one worker are in order already; DATA stays behind its row.
func assemble(number uint32, rows []api.TraceRow) Packet {
	slices.SortStableFunc(rows, func(x, y api.TraceRow) int { return cmp.Compare(x.Ns, y.Ns) })
	p := Packet{Number: number, Outcome: "on its way"}
	for i := range rows {
		p.add(&rows[i])
	}
	p.Conclusion = p.conclude()
	return p
}

func (p *Packet) add(row *api.TraceRow) {
	text := strings.ToValidUTF8(string(row.Data[:min(int(row.Length), len(row.Data))]), "?")
	step := Step{Worker: row.Worker, Ticks: row.Ticks, Text: text}
	step.Node, step.Next = api.CString(row.Node[:]), api.CString(row.Next[:])
	port := api.CString(row.Port[:])
	switch row.What {
	case api.TraceWhatEntered:
		p.Time, p.Port, p.Length = time.Unix(0, int64(row.Ns)), port, row.Frame
		step.Text = ""
		p.Steps = append(p.Steps, step)
	case api.TraceWhatStep:
		p.Steps = append(p.Steps, step)
	case api.TraceWhatWent:
		p.Steps = append(p.Steps, step)
		if row.Outcome != api.TraceOutcomeHanded {
			p.end(outcomes[row.Outcome], port, text)
		}
	case api.TraceWhatData:
		p.addFrame(row)
	}
}

// end says how it ended; of a packet that was to be sent and was dropped by the port, both come.
func (p *Packet) end(outcome, port, text string) {
	if p.Outcome == "dropped" {
		return
	}
	p.Outcome, p.OutPort, p.Text, p.Reason = outcome, port, text, ""
	if name, _, ok := strings.Cut(text, ": "); ok && (outcome == "dropped" || outcome == "punted") {
		p.Reason = name
	}
}

func (p *Packet) addFrame(row *api.TraceRow) {
	stage, at := stages[row.Of], time.Unix(0, int64(row.Ns))
	data := row.Data[:min(int(row.Length), len(row.Data))]
	if n := len(p.Frames); n > 0 && p.Frames[n-1].Stage == stage && p.Frames[n-1].Time.Equal(at) {
		p.Frames[n-1].Bytes = append(p.Frames[n-1].Bytes, data...)
		return
	}
	p.Frames = append(p.Frames, Frame{Stage: stage, Port: api.CString(row.Port[:]), Time: at, Length: row.Frame,
		Bytes: slices.Clone(data)})
}

// Path is the nodes that the packet passed.
func (p *Packet) Path() string {
	var nodes []string
	for _, s := range p.Steps {
		nodes = append(nodes, s.Node)
	}
	return strings.Join(slices.Compact(nodes), " > ")
}
