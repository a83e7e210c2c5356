// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"

	"isthmus/api"
	"isthmus/controlplane/dp"
)

// stream is one synth stream of the benchmark.
type stream struct {
	name   string
	uplink bool
	floor  bool // on the cross-connected ports
	filler bool // never started: takes places in the pattern, so that the direction is slower
	body   api.Synth
}

func (s *stream) change() dp.Change {
	return dp.Change{Kind: api.KindSynth, Key: s.name, Body: api.Body(&s.body)}
}

// template turns an encoded packet into an API template with the fields that change from flow to flow.
func (l *layout) template(p *packet, strict bool) (api.SynthTemplate, error) {
	t := api.SynthTemplate{Length: uint16(p.header)}
	if p.header > len(t.Bytes) {
		return t, fmt.Errorf("%d bytes of headers, %d fit a template", p.header, len(t.Bytes))
	}
	copy(t.Bytes[:], p.bytes[:p.header])
	for i := range p.header {
		t.Mask[i] = 0xff
	}
	if !strict && p.outerIP >= 0 {
		// The identification of the outer header is the gateway's own choice, and its checksum follows.
		for _, i := range []int{4, 5, 10, 11} {
			t.Mask[p.outerIP+i] = 0
		}
	}
	flows := uint32(l.flows)
	add := func(offset, width int, divide, modulo uint32) {
		if offset >= 0 {
			t.Field[t.Fields] = api.SynthField{
				Offset: uint16(offset), Width: byte(width), Type: api.FieldAdd, Divide: divide, Modulo: modulo, Step: 1,
			}
			t.Fields++
		}
	}
	add(p.mac, 6, flows, 0)
	add(p.sTag, 2, flows*perSTag, 0)
	add(p.cTag, 2, flows, perSTag)
	add(p.pppoe, 2, flows, 0)
	add(p.teid, 4, flows, 0)
	add(p.ueAddress, 4, flows, 0)
	if flows > 1 {
		add(p.udpSource, 2, 1, flows)
	}
	t.Field[t.Fields] = api.SynthField{Offset: uint16(p.innerIP), Type: api.FieldIP4Sum, Width: 2, Divide: 1}
	t.Fields++
	return t, nil
}

// frame makes the packet that enters, of `size` bytes in memory, and the expected one.
func frame(h half, uplink bool, size int) (in, out *packet, err error) {
	enter, leave := corePacket, accessPacket
	if uplink {
		enter, leave = accessPacket, corePacket
	}
	empty, err := enter(h, uplink, 0)
	if err != nil {
		return nil, nil, err
	}
	payload := size - empty.header
	if payload < 16 {
		return nil, nil, fmt.Errorf("a frame of %d bytes does not hold its headers and a tag", size+fcs)
	}
	if in, err = enter(h, uplink, payload); err != nil {
		return nil, nil, err
	}
	out, err = leave(h, uplink, payload)
	return in, out, err
}

// streams makes all streams of a profile: each half of the subscribers in both directions, for the gateway and, on the
// cross-connected ports, for the floor.
func (l *layout) streams(p Profile, share, checkEvery int) ([]*stream, error) {
	var list []*stream
	for _, floor := range []bool{false, true} {
		for _, uplink := range []bool{true, false} {
			size, places := p.Downlink-fcs, pattern
			if uplink {
				size, places = p.Uplink-fcs, share
			}
			for i, h := range l.halves() {
				mine := places / 2
				if i == 0 {
					mine = places - places/2
				}
				s, err := l.stream(h, uplink, floor, size, mine, checkEvery)
				if err != nil {
					return nil, err
				}
				s.body.Seed = uint64(len(list) + 1)
				list = append(list, s)
			}
			if places < pattern {
				filler := *list[len(list)-1]
				filler.name, filler.filler = filler.name+"-pause", true
				filler.body.Share = uint32(pattern - places)
				list = append(list, &filler)
			}
		}
	}
	return list, nil
}

func (l *layout) stream(h half, uplink, floor bool, size, share, checkEvery int) (*stream, error) {
	in, out, err := frame(h, uplink, size)
	if err != nil {
		return nil, err
	}
	s := &stream{name: h.name, uplink: uplink, floor: floor}
	from, to := "core", "access"
	s.name += "-down"
	if uplink {
		from, to = to, from
		s.name = h.name + "-up"
	}
	if floor {
		from, to = "floor-"+from, "floor-"+to
		s.name += "-floor"
	}
	s.body = api.Synth{
		Flows: uint32(h.count * l.flows), Share: uint32(share), CheckEvery: uint32(checkEvery), Sizes: 1,
		RandomOrder: 1,
		Size:        [8]uint16{uint16(size)}, WorkerModulo: uint32(l.steered), WorkerDivide: uint32(l.flows),
	}
	copy(s.body.Port[:], from)
	copy(s.body.Sink[:], to)
	if s.body.In, err = l.template(in, true); err != nil {
		return nil, err
	}
	s.body.Out, err = l.template(out, false)
	return s, err
}
