// SPDX-License-Identifier: Apache-2.0

package dptest

import (
	"slices"

	"isthmus/api"
	"isthmus/controlplane/access"
	"isthmus/controlplane/dp"
)

// AccessPort is a port that the channel reports, now and to later openers.
func (s *Server) AccessPort(name string, a access.PortAddresses) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := api.FramePort{MAC: a.MAC}
	copy(p.Name[:api.NameSize-1], name)
	if a.LinkLocal.IsValid() {
		p.LinkLocal = a.LinkLocal.As16()
	}
	s.ports = append(slices.DeleteFunc(s.ports, func(o api.FramePort) bool { return o.Name == p.Name }), p)
	if s.channel != nil {
		s.channel.tellPorts()
	}
}

// Punt gives frames to the channel's owner, in one message, and returns whether there is one.
func (s *Server) Punt(frames ...access.Frame) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body []byte
	for i := range frames {
		body = dp.AppendFrame(body, &frames[i])
	}
	if s.channel == nil {
		return false
	}
	s.channel.push(s.channel.subscription, 0, body)
	return true
}

// Sent returns the frames that came down the channel until now, and forgets them.
func (s *Server) Sent() []access.Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.frames
	s.frames = nil
	return list
}

// A message without structs means no ports.
func (c *session) tellPorts() {
	body := api.AppendRows(nil, c.s.ports)
	if len(c.s.ports) == 0 {
		body = api.Body(&api.FramePort{})
		body = body[:api.SizeofPartHead]
		clear(body[4:])
	}
	c.push(c.subscription, 0, body)
}

// Hold calls fn while the data plane does not answer.
func (s *Server) Hold(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
}
