// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// What the running data plane would refuse is known before it is asked.
func TestFixedByARunningDataPlane(t *testing.T) {
	const text = `
engine: {workers: 1, rates: {echo: 100}}
ports: [{name: a, driver: synth, role: core, mtu: 1500}, {name: b, driver: synth, role: core}]
`
	running, err := MakePlan("x.yaml", []byte(text))
	testkit.Must(t, err)
	for _, test := range []struct{ old, new, want string }{
		{"echo: 100", "echo: 200", ""}, {"name: b", "name: c", ""}, {"role: core}]", "role: core, xconnect: a}]", ""},
		{"mtu: 1500", "mtu: 1600", "port a: "}, {"workers: 1", "workers: 2", "engine settings"},
	} {
		plan, err := MakePlan("x.yaml", []byte(strings.Replace(text, test.old, test.new, 1)))
		testkit.Must(t, err)
		got := strings.Join(plan.fixedBy(running), "; ")
		testkit.ErrorIf(t, !strings.HasPrefix(got, test.want) || test.want == "" && got != "", "%s: %s", test.new, got)
	}
}
