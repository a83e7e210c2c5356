// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"

	"isthmus/controlplane/aaa"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/lease"
)

// What comes before a configuration is accepted.

// prepared is what a plan needs of this machine, which may fail; nil parts: they stay as they are.
type prepared struct {
	access *preparedAccess
	files  *plan.Staged
}

// preparedAccess is what subscribers who sign in take.
type preparedAccess struct {
	aaa              *aaa.Prepared
	upstream, former upstreams
}

// prepare makes what can be made, and tells what cannot.
func (a *Agent) prepare(plan *plan.Plan) (p prepared, err error) {
	access, noAccess := a.prepareAccess(plan)
	files, noFiles := a.files.Stage(plan)
	return prepared{access, files}, errors.Join(noAccess, noFiles)
}

func (p *prepared) discard() {
	if p.access != nil {
		p.access.aaa.Discard()
		p.access.upstream.closeBut(p.access.former)
	}
	if p.files != nil {
		p.files.Discard()
	}
}

// prepareAccess does what may fail of taking a plan over; nil: nothing has to be taken.
func (a *Agent) prepareAccess(plan *plan.Plan) (*preparedAccess, error) {
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
