// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"isthmus/api"
)

// Shaping is where the downlink into tunnels of an instance's sessions waits, or that of an access port's lines: in a
// pipe each of a port's scheduler.
type Shaping struct {
	Port     string
	Profile  string // without a named profile
	Profiles []string
	Subports []ShapingSubport
	Taken    []Pipe // of the configuration's subscribers
}

// ShapingSubport is a scheduler's subport: the sessions of its worker have room in it.
type ShapingSubport struct {
	Worker uint16
	Pipes  uint32
}

// Pipe is a session's place in a scheduler, 0: none.
type Pipe uint32

// PipeAt is the pipe of a subport.
func PipeAt(subport int, pipe uint32) Pipe { return Pipe(subport)<<16 + Pipe(pipe) + 1 }

// Subport is the number of the pipe's subport.
func (p Pipe) Subport() int { return int(p-1) >> 16 }

func (p Pipe) place() (subport, pipe uint32) { return uint32(p-1) >> 16, uint32(p-1) & 0xffff }

// Knows: the scheduler has the profile that a line names.
func (h *Shaping) Knows(line *api.Session) bool {
	name := api.CString(line.PipeProfile[:])
	return name == "" || slices.Contains(h.Profiles, name)
}

// has: the scheduler has the pipe for sessions of a worker.
func (h *Shaping) has(p Pipe, worker uint16) bool {
	if p == 0 {
		return false
	}
	subport, pipe := p.place()
	return subport < uint32(len(h.Subports)) && pipe < h.Subports[subport].Pipes && h.Subports[subport].Worker == worker
}

// Shaping is the one of the first PDR whose instance has one, or of a line's port; nil: none.
func (s *Settings) Shaping(session *Session) *Shaping {
	if l := session.Line; l != nil {
		return s.Lines[api.CString(l.Port[:])]
	}
	for i := range session.PDR {
		pdi := &session.PDR[i].PDI
		if n := s.find(pdi.NetworkInstance, pdi.Source, needNothing); n != nil && n.Shaping != nil {
			return n.Shaping
		}
	}
	return nil
}

// ShapedPipe is a session's pipe, by the scheduler's port; "" without an existing one.
func (s *Settings) ShapedPipe(session *Session) (port string, p Pipe) {
	if session.Pipe == 0 {
		return "", 0
	}
	h := s.Shaping(session)
	if h == nil || !h.has(session.Pipe, session.Worker) {
		return "", 0
	}
	return h.Port, session.Pipe
}

// shaping sets where the session's downlink waits. A line of the configuration names it.
func (c *Compiler) shaping() {
	c.out.Port, c.out.Pipe = c.Set.ShapedPipe(c.s)
	if c.out.Pipe == 0 {
		return
	}
	copy(c.head.Port[:api.NameSize-1], c.out.Port)
	if c.head.PipeProfile[0] == 0 {
		copy(c.head.PipeProfile[:api.NameSize-1], c.Set.Shaping(c.s).Profile)
	}
	c.head.Subport, c.head.Pipe = c.out.Pipe.place()
}
