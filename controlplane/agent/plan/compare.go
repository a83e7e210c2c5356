// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/intent"
)

// FixedBy lists what a data plane that runs another plan cannot change (dataplane/core/engine.c, port.c).
func (p *Plan) FixedBy(running *Plan) (list []string) {
	has := map[api.Key]*intent.Object{}
	for i := range running.Objects {
		if o := &running.Objects[i]; o.Kind == api.KindPort || o.Kind == api.KindEngine {
			has[o.Key] = o
		}
	}
	for i := range p.Objects {
		o := &p.Objects[i]
		was := has[o.Key]
		if was == nil || was.Kind != o.Kind || bytes.Equal(fixedPart(was), fixedPart(o)) {
			continue
		}
		if o.Kind == api.KindEngine {
			list = append(list, "engine settings other than rates and times need a restart of the data plane")
		} else {
			list = append(list, fmt.Sprintf("port %s: other settings need another name, or a restart of the data plane",
				o.Name()))
		}
	}
	return list
}

// fixedPart is a body without what may change.
func fixedPart(o *intent.Object) []byte {
	if o.Kind == api.KindPort {
		var p api.Port
		if _, err := api.ReadRow(o.Body, &p); err == nil {
			p.Xconnect, p.SignIn = api.Port{}.Xconnect, 0
			return api.Body(&p)
		}
	}
	var e api.Engine
	if _, err := api.ReadRow(o.Body, &e); err == nil && o.Kind == api.KindEngine {
		e.ICMPErrorRate, e.ErrorIndicationRate, e.EchoRate, e.PuntRate = 0, 0, 0, 0
		e.PuntSubscriberRate, e.PuntLineRate, e.PuntSTagRate, e.PuntPortRate = 0, 0, 0, 0
		e.SolicitationRate, e.EventRate, e.BufferSeconds = 0, 0, 0
		e.FlowRate, e.SubscriberFlowRate, e.FlowIdle, e.FlowLifetime = 0, 0, 0, 0
		return api.Body(&e)
	}
	return o.Body
}

// Diff returns the transaction that turns what is held into what is wanted. Synth streams are test traffic outside the
// intent: held ones stay.
func Diff(held []api.Digest, want intent.State) []dp.Change {
	held = slices.DeleteFunc(slices.Clone(held), func(d api.Digest) bool { return d.Kind == api.KindSynth })
	puts, deletes := intent.Diff(held, want)
	return append(Changes(deletes), Changes(puts)...)
}

// Changes turns objects into changes; an object without body is a deletion.
func Changes(objects []intent.Object) []dp.Change {
	list := make([]dp.Change, len(objects))
	for i := range objects {
		list[i] = dp.Change{Kind: objects[i].Kind, Key: objects[i].Name(), Body: objects[i].Body}
	}
	return list
}

// Changes bring all of a plan to an empty data plane.
func (p *Plan) Changes() []dp.Change { return Changes(p.Objects) }

// NeedsRestart returns which changes wait for a restart, and of which process; "" without any.
func (p *Plan) NeedsRestart(running *Plan) string {
	was, is := running.Control, p.Control
	var keys []string
	for _, c := range []struct {
		key   string
		equal bool
	}{
		{"dp_socket", was.DPSocket == is.DPSocket},
		{"socket", was.Socket == is.Socket},
		{"state", was.State == is.State},
		{"metrics", was.Metrics == is.Metrics},
		{"api", was.API.Static() == is.API.Static()},
		{"page", was.Page == is.Page},
		{"resync_period", was.ResyncPeriod == is.ResyncPeriod},
		{"usage_period", was.UsagePeriod == is.UsagePeriod},
		{"restart.policy", was.Restart.Policy == is.Restart.Policy},
		{"restart.delay_ms", was.Restart.Delay == is.Restart.Delay},
		{"restart.max_delay_ms", was.Restart.MaxDelay == is.Restart.MaxDelay},
		{"restart.program", was.Restart.Program == is.Restart.Program},
	} {
		if !c.equal {
			keys = append(keys, "control."+c.key)
		}
	}
	again := func(what, of string) string { return what + " in effect when " + of + " started again" }
	us := "the control plane is"
	var notes []string
	if len(keys) > 0 {
		notes = append(notes, again(strings.Join(keys, ", ")+":", us))
	}
	if restartsPFCP(running, p) {
		notes = append(notes, again("pfcp: addresses, peers, roles, timers, rates and store are", us))
	}
	if (running.SignIn == nil) != (p.SignIn == nil) {
		notes = append(notes, again("access: that subscribers sign in is", us))
	}
	if running.HugePages != p.HugePages {
		notes = append(notes, again("engine.huge_pages:", "the control plane and then the data plane are"))
	}
	return strings.Join(notes, "; ")
}
