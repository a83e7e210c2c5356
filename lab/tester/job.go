// SPDX-License-Identifier: Apache-2.0

package tester

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"isthmus/traffic/job"
)

// Job is the profile in the engine's form: its head, its ports, and each stream with its two stacks. With check, the
// engine only reports faults.
func (c *Checked) Job(check bool) []byte {
	var b bytes.Buffer
	put := func(v any) {
		if err := binary.Write(&b, binary.NativeEndian, v); err != nil {
			panic(err) // structs of fixed layout, to memory
		}
	}
	put(c.head(check))
	for i := range c.Ports {
		put(c.Ports[i].job())
	}
	for i := range c.Streams {
		put(c.stream(i))
		for _, side := range []string{"send", "receive"} {
			put(cmp.Or(c.read.stacks[fmt.Sprintf("streams[%d].%s", i, side)], &job.Stack{}))
		}
	}
	return b.Bytes()
}

func (c *Checked) head(check bool) *job.Job {
	h := &job.Job{Number: job.Version, Ports: uint32(len(c.Ports)), Streams: uint32(len(c.Streams)),
		Bytes: job.SizeofJob + job.SizeofPort + job.SizeofStream + job.SizeofStack + job.SizeofTrial +
			job.SizeofStreamCount,
		CPUs: uint32(len(c.CPUs)), GatewayCPU: job.NoCPU, HugePages: number(c.HugePages),
		MemoryMb: uint32(c.MemoryMB), Drain: c.Run.Drain, LinkWait: c.Run.LinkWait,
		StealMax: c.Run.Disturbed.Steal.Value(), Check: number(check)}
	if c.GatewayCPU != nil {
		h.GatewayCPU = uint32(*c.GatewayCPU)
	}
	for i, cpu := range c.CPUs {
		h.CPU[i] = uint16(cpu)
	}
	if c.Capture != nil {
		h.Capture.Every, h.Capture.Count = uint32(c.Capture.Every), uint32(c.Capture.Count)
		copy(h.Capture.File[:], c.Capture.File)
	}
	return h
}

func number(is bool) uint32 {
	if is {
		return 1
	}
	return 0
}

func (p *Port) job() *job.Port {
	to := &job.Port{MTU: uint32(p.MTU), Descriptors: uint32(p.Descriptors), Queues: uint32(p.Queues),
		Addresses: uint32(len(p.Addresses))}
	copy(to.Name[:], p.Name)
	copy(to.Driver[:], p.Driver)
	copy(to.Device[:], p.Device)
	copy(to.Args[:], p.Args)
	mac, _ := macAddress(p.MAC) // none: the device's own
	copy(to.MAC[:], mac)
	for i, text := range p.Addresses {
		a, _ := address(text) // checked
		to.Address[i].Version = 6
		if a.Is4() {
			to.Address[i].Version = 4
		}
		copy(to.Address[i].Bytes[:], a.AsSlice())
	}
	return to
}

func (c *Checked) stream(i int) *job.Stream {
	s := &c.Streams[i]
	to := &job.Stream{Seed: uint64(s.Seed), OwnPps: s.ownPPS(), Zipf: s.Zipf,
		Port: uint32(slices.Index(c.portNames(), s.Port)), Sink: uint32(slices.Index(c.portNames(), s.Sink)),
		Answers: -1, Share: uint32(s.Share), Flows: uint32(s.Flows), Block: uint32(s.Block),
		Order:        uint32(slices.Index([]string{"turn", "random", "zipf"}, s.Order)),
		CheckPayload: uint32(*s.CheckPayload), Sizes: uint32(len(s.Size)),
		ReceiveAny: byte(number(c.read.stacks[fmt.Sprintf("streams[%d].receive", i)] == nil)),
		Judged:     byte(number(s.Expect == nil))}
	copy(to.Name[:], s.Name)
	if s.Answers != "" {
		to.Answers = int32(slices.Index(c.streamNames(), s.Answers))
	}
	for k, bytes := range slices.Sorted(maps.Keys(s.Size)) {
		to.Size[k] = job.Size{Bytes: uint16(bytes), Weight: uint16(s.Size[bytes])}
	}
	return to
}

// Refused are the engine's faults with a job: they stand where the file has the layer, or the sizes.
func (c *Checked) Refused(list []job.Fault) error {
	r := c.read
	for i := range list {
		f := &list[i]
		side := map[uint32]string{job.PartSend: "send", job.PartReceive: "receive",
			job.PartSize: "size"}[f.Part]
		text, _, _ := bytes.Cut(f.Text[:], []byte{0})
		r.fault(fmt.Sprintf("streams[%d].%s", f.Stream, side), int(f.Line), "%s", text)
	}
	return &r.Faults
}
