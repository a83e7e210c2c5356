// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"fmt"
	"net/http"

	"isthmus/api"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/intent"
)

// fixedBy lists what a data plane that runs another plan cannot change (dataplane/core/engine.c, port.c).
func (p *Plan) fixedBy(running *Plan) (list []string) {
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

// handleCheck is handleApply that changes nothing.
func (a *Agent) handleCheck(w http.ResponseWriter, r *http.Request) {
	_, plan, err := a.planOf(w, r)
	if err != nil {
		answer(w, nil, err)
		return
	}
	answer(w, v1.Checked{Objects: len(plan.Objects),
		Fixed: append([]string{}, plan.fixedBy(a.current.Load())...)}, nil)
}
