// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"isthmus/controlplane/config"
	"isthmus/controlplane/doctor"
)

// read is a plan's configuration again: of its text, with its CPUs. A plan does not keep it for its size.
func (p *Plan) read() (*config.Config, error) {
	return config.ParseOn(p.site(), p.File, p.Text, p.Placement)
}

// site is where a plan was made.
func (p *Plan) site() config.Site {
	site := config.Here()
	site.Kept = p.CPUs
	return site
}

// Differs lists the keys in which a plan differs from the running one.
func (p *Plan) Differs(running *Plan) []string {
	from, err := running.read()
	if err != nil {
		return []string{"the running configuration cannot be compared: " + err.Error()}
	}
	to, err := p.read()
	if err != nil {
		return []string{"it cannot be compared: " + err.Error()}
	}
	return config.Diff(from, to)
}

// Effective is the text in effect (config.Effective).
func (p *Plan) Effective() ([]byte, error) { return config.Effective(p.site(), p.Text) }

// Lacks says which devices of ports this machine does not have, or has in other hands: a configuration may be made
// elsewhere, or before they are.
func (p *Plan) Lacks() (list []string) {
	for _, f := range doctor.Drivers(&doctor.Machine{Root: "/", Ports: p.Ports}) {
		if f.State == doctor.Fault {
			list = append(list, fmt.Sprintf("port %s: %s here now (%s)", f.Subject, f.Found, f.Command))
		}
	}
	return list
}
