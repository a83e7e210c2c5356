// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"

	"isthmus/controlplane/agent/plan"
)

// What comes before a configuration is accepted.

// prepared is what a plan needs of this machine, which may fail.
type prepared struct {
	sessions plan.Prepared
	files    *plan.Staged // nil: they could not be written
}

// prepare makes what can be made, and tells what cannot.
func (a *Agent) prepare(p *plan.Plan) (prepared, error) {
	sessions, noSessions := a.sessions.Prepare(p)
	files, noFiles := a.files.Stage(p)
	return prepared{sessions, files}, errors.Join(noSessions, noFiles)
}

func (p *prepared) discard() {
	p.sessions.Discard()
	if p.files != nil {
		p.files.Discard()
	}
}
