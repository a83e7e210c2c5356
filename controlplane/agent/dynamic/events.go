// SPDX-License-Identifier: Apache-2.0

package dynamic

import (
	"time"

	"isthmus/api"
	"isthmus/controlplane/events"
	"isthmus/controlplane/rules"
)

// observe connects the parts' events.
func (s *Sessions) observe() {
	s.Tally = events.NewSessions(s.opt.Events, rules.Key)
	s.Manager.SetObserver(s.Tally)
	if s.server != nil {
		s.server.SetTell(func(kind, id string, args ...any) { s.opt.Events.Publish(kind, id, args...) })
	}
	s.Manager.SetRecorder(func(e *api.Event) bool {
		s.heard(e)
		return s.watermark(e) || s.blocks.Event(e)
	})
}

// watermark logs that a counter reached its watermark; false: the event is another.
func (s *Sessions) watermark(e *api.Event) bool {
	if e.Type != api.EventTypeWatermark {
		return false
	}
	s.opt.Log.Info("watermark reached", "counter", api.CString(e.Counter[:]), "session", api.CString(e.Session[:]),
		"seid", e.SEID, "packets", e.Usage.Packets[0], "bytes", e.Usage.Bytes[0])
	return true
}

// heard publishes the data plane's events about peers and watermarks. One goroutine calls it.
func (s *Sessions) heard(e *api.Event) {
	peer, local := e.Peer.String(), e.Local.String()
	switch e.Type {
	case api.EventTypePathDown:
		s.opt.Events.Publish("peer.down", peer, "local", local)
	case api.EventTypePathUp:
		kind := "peer.up"
		if e.Rule == 1 { // its recovery counter changed (TS 29.281 §7.2.2)
			kind = "peer.restarted"
		}
		s.opt.Events.Publish(kind, peer, "local", local)
	case api.EventTypeErrorIndication:
		if more, ok := s.indications.Open(time.Now()); ok {
			s.opt.Events.Publish("peer.error-indication", peer, "teid", e.TEID, "session",
				api.CString(e.Session[:]), "more", more)
		}
	case api.EventTypeWatermark:
		s.opt.Events.Publish("counter.watermark", api.CString(e.Counter[:]),
			"session", api.CString(e.Session[:]), "seid", e.SEID, "packets", e.Usage.Packets[0], "bytes",
			e.Usage.Bytes[0])
	}
}
