// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

func TestDiff(t *testing.T) {
	for _, r := range []struct{ from, to, want string }{
		{"role: core}", "role: core}", ""},
		{"role: core}", "role: core } # the same", ""},
		{"role: core}", "role: core, mtu: 1600}", "~ ports[core].mtu: 1500 -> 1600"},
		{"role: core}", "role: core, mac: 02:00:00:00:00:09}", "~ ports[core].mac:  -> 02:00:00:00:00:09"},
		{"role: core}\n", "role: core}\n  - {name: x, driver: synth, role: core}\n",
			"+ ports[x]: {name: x, driver: synth, role: core}"},
		{"  - {name: access, driver: synth, role: access}\n  - {name: core, driver: synth, role: core}\n",
			"  - {name: core, driver: synth, role: core}\n  - {name: access, driver: synth, role: access}\n",
			"~ ports: another order"},
		{"peer: 10.0.0.2", "peer: 10.0.0.2, qfi_dscp: {9: 10, 10: 46}", "~ paths[upf].qfi_dscp: {} -> {9: 10, 10: 46}"},
		{"[10.0.0.1/24]", "[10.0.0.1/24, 10.7.0.1/24]",
			"~ interfaces[n3].addresses: [10.0.0.1/24] -> [10.0.0.1/24, 10.7.0.1/24]"},
		{"paths:", "routes: [{prefix: 10.1.0.0/16, via: 10.0.0.9}]\n" +
			"control: {restart: {delay_ms: 7}, metrics: \"\"}\npaths:",
			"~ control.metrics: 127.0.0.1:9464 -> \"\"|~ control.restart.delay_ms: 100 -> 7|" +
				"+ routes: {prefix: 10.1.0.0/16, via: 10.0.0.9}"},
		{"paths:", "aaa: {users: [{name: anna, password: hush}]}\npaths:",
			"+ aaa.users[anna]: {name: anna, password: (hidden)}"},
	} {
		from, to := mustParse(t, base), mustParse(t, strings.Replace(base, r.from, r.to, 1))
		testkit.Equal(t, strings.Join(Diff(from, to), "|"), r.want, "%s", r.to)
		back := strings.Join(Diff(to, from), "|")
		testkit.ErrorIf(t, strings.Count(back, "|") != strings.Count(r.want, "|") || (back == "") != (r.want == ""),
			"back: %s", back)
	}
	secret := func(word string) *Config {
		return mustParse(t, base+"aaa: {users: [{name: anna, password: "+word+"}]}\n")
	}
	testkit.Equal(t, strings.Join(Diff(secret("one"), secret("two")), "|"),
		"~ aaa.users[anna].password: (hidden) -> (hidden)", "a secret")
}

// What is in effect can be read anywhere, and means the same.
func TestEffective(t *testing.T) {
	site := Site{Environ: []string{"ISTHMUS_ENGINE_LIMITS_FLOWS=4096", "ISTHMUS_CONTROL_METRICS=", "SECRET=hush-hush",
		"STATE=/var/${x}/lib", "FLAGS=true"}}
	text := joined([]part{{text: []byte("# a comment\nengine: &e {workers: 2, idle_sleep: \"${FLAGS}\"}\ncontrol: " +
		"{state: \"${STATE}\"}\n" + base)}, {name: "b", text: []byte("engine: {flow_idle: 7}\n" +
		"aaa: {users: [{name: a, password: &p \"${SECRET}\"}, {name: b, password: *p}]}\n")}})
	out, err := Effective(site, text)
	testkit.Must(t, err)
	testkit.ErrorIf(t, strings.Contains(string(out), "hush") || strings.Contains(string(out), "comment"), "%s", out)
	shown, err := ParseShown("x", out)
	testkit.Must(t, err)
	real, err := ParseOn(site, "x", text, nil)
	testkit.Must(t, err)
	want := "~ aaa.users[a].password: (hidden) -> (hidden)|~ aaa.users[b].password: (hidden) -> (hidden)"
	testkit.Equal(t, strings.Join(Diff(real, shown), "|"), want, "in %s", out)
	testkit.Equal(t, string(shown.Control.State), "/var/${x}/lib", "a value that looks like a reference")
	_, err = Effective(site, []byte("ports: 7\n"))
	testkit.Refused(t, err, "configuration:1: ports: needs a list")
}
