// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"strings"

	"isthmus/controlplane/aaa"
	"isthmus/controlplane/lease"
)

// What comes before a configuration is accepted.

// prepared is what a plan needs of this machine, which may fail; nil parts: they stay as they are.
type prepared struct {
	access *preparedAccess
	files  *staged
}

// preparedAccess is what subscribers who sign in take.
type preparedAccess struct {
	aaa              *aaa.Prepared
	upstream, former upstreams
}

// prepare makes what can be made, and tells what cannot.
func (a *Agent) prepare(plan *Plan) (p prepared, err error) {
	access, noAccess := a.prepareAccess(plan)
	files, noFiles := a.files.stage(plan)
	return prepared{access, files}, errors.Join(noAccess, noFiles)
}

func (p *prepared) discard() {
	if p.access != nil {
		p.access.aaa.Discard()
		p.access.upstream.closeBut(p.access.former)
	}
	if p.files != nil {
		p.files.discard()
	}
}

// prepareAccess does what may fail of taking a plan over; nil: nothing has to be taken.
func (a *Agent) prepareAccess(plan *Plan) (*preparedAccess, error) {
	if a.mobile == nil || a.mobile.access == nil || plan.SignIn == nil { // of a plan for the next start
		return nil, plan.Check()
	}
	if err := lease.Check(lease.FromConfig(plan.SignIn.Pools)); err != nil {
		return nil, err
	}
	s := a.mobile.access
	upstream, err := s.openUpstreams(plan.SignIn)
	if err != nil {
		return nil, err
	}
	next, err := s.aaa.Prepare(plan.SignIn)
	if err != nil {
		upstream.closeBut(s.upstream)
		return nil, err
	}
	return &preparedAccess{next, upstream, s.upstream}, nil
}

// needsRestart tells which changes wait for a restart, and of what; "" when there are none.
func (a *Agent) needsRestart(plan *Plan) string {
	was, is := a.plan.Control, plan.Control
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
		{"restart.delay_ms", was.Restart.DelayMS == is.Restart.DelayMS},
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
	if restartsPFCP(a.plan, plan) {
		notes = append(notes, again("pfcp: addresses, peers, roles, timers, rates and store are", us))
	}
	if (a.plan.SignIn == nil) != (plan.SignIn == nil) {
		notes = append(notes, again("access: that subscribers sign in is", us))
	}
	if a.plan.HugePages != plan.HugePages {
		notes = append(notes, again("engine.huge_pages:", "the control plane and then the data plane are"))
	}
	return strings.Join(notes, "; ")
}
