// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// Changes that the running data plane would refuse are known before.
func TestFixedByARunningDataPlane(t *testing.T) {
	const text = `
engine: {workers: 1, rates: {echo: 100}}
ports: [{name: a, driver: synth, role: core, mtu: 1500}, {name: b, driver: synth, role: core}]
`
	running, err := Make("x.yaml", []byte(text))
	testkit.Must(t, err)
	for _, test := range []struct{ old, new, want string }{
		{"echo: 100", "echo: 200", ""}, {"name: b", "name: c", ""}, {"role: core}]", "role: core, xconnect: a}]", ""},
		{"mtu: 1500", "mtu: 1600", "port a: "}, {"workers: 1", "workers: 2", "engine settings"},
	} {
		plan, err := Make("x.yaml", []byte(strings.Replace(text, test.old, test.new, 1)))
		testkit.Must(t, err)
		got := strings.Join(plan.FixedBy(running), "; ")
		testkit.ErrorIf(t, !strings.HasPrefix(got, test.want) || test.want == "" && got != "", "%s: %s", test.new, got)
	}
}

func TestRestartsAreNamed(t *testing.T) {
	const small = "ports: [{name: core, driver: synth, role: core}]\n"
	base, err := Make("x", []byte(small))
	testkit.Must(t, err)
	for text, want := range map[string]string{
		"":                             "",
		"engine: {rates: {echo: 7}}\n": "",
		"engine: {huge_pages: 'off'}\n": "engine.huge_pages: in effect when the control plane and then the data " +
			"plane are started again",
		"control: {restart: {delay_ms: 7, max_delay_ms: 8}}\n": "control.restart.delay_ms, " +
			"control.restart.max_delay_ms: in effect when the control plane is started again",
		"control: {restart: {policy: never, program: /x}}\n": "control.restart.policy, " +
			"control.restart.program: in effect",
		"control: {state: /x, metrics: '', resync_period: 7}\n": "control.state, control.metrics, " +
			"control.resync_period: in effect",
		"control: {usage_period: 0}\n": "control.usage_period: in effect",
		"control: {socket: /x}\nengine: {huge_pages: 'on'}\n": "control.socket: in effect when the control " +
			"plane is started again; engine.huge_pages: in effect",
		"control: {dp_socket: /x, restart: {policy: external}}\n": "control.dp_socket, control.restart.policy: in " +
			"effect",
		"control: {restart: {policy: always}, resync_period: 30}\n": "",
		"control: {api: {listen: [127.0.0.1], anonymous: read}}\n":  "control.api: in effect",
		"control: {api: {anonymous: read, hosts: [gw.lab]}}\n":      "",
	} {
		plan, err := Make("x", []byte(text+small))
		testkit.Must(t, err)
		got := plan.NeedsRestart(base)
		testkit.ErrorIf(t, !strings.HasPrefix(got, want) || want == "" && got != "", "%s: %q", text, got)
	}
}
