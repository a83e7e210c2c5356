// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// dropIns writes a file and its drop-ins ("NAME", "TEXT", …) and reads them as one text.
func dropIns(t *testing.T, text string, more ...string) (file string, all []byte) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "isthmus.yaml")
	testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	testkit.Must(t, os.Mkdir(Folder(file), 0o755))
	for i := 0; i < len(more); i += 2 {
		testkit.Must(t, os.WriteFile(filepath.Join(Folder(file), more[i]), []byte(more[i+1]), 0o600))
	}
	all, err := Read(file)
	testkit.Must(t, err)
	return file, all
}

func TestDropIns(t *testing.T) {
	file, text := dropIns(t, `engine: {workers: 2, cpus: [0, 1], limits: {flows: 64, sessions: 9}}
ports:
  - &card {name: access, driver: synth, role: access}
  - {name: core, driver: synth, role: core, mtu: 1600}
interfaces:
  - {name: n3, port: core, addresses: [10.0.0.1/24]}
routes:
  - {prefix: 10.1.0.0/16, via: 10.0.0.9}
paths:
  - {name: upf, local: 10.0.0.1, peer: 10.0.0.2, qfi_dscp: {1: 46, 2: 10}}
firewall: {uplink: {rules: [{action: deny}]}}
control: {socket: /run/a}`, // without an end of line
		"20-more.yaml", "engine:\n  workers: 3\n  cpus: [1, 2, 3]\n  limits:\nrouts: []\n",
		"10-site.yaml", `# of this site
ports:
  - {name: core, driver: net_tap, device: dtap0}
  - {name: spare, driver: synth, role: core}
interfaces:
  - {name: n3, addresses: [10.0.0.1/24, 10.7.0.1/24]}
routes: [{prefix: 10.2.0.0/16, via: 10.7.0.9}]
paths: [{name: upf, qfi_dscp: {2: 12, 3: 18}}]
engine: {limits: {flows: 128}}
firewall: {uplink: {rules: [{action: permit}]}}
`, "30-nothing.yaml", "# nothing\n---\n", ".hidden.yaml", "x", "old.yaml~", "x", "README", "x")
	folder := Folder(file)
	names := Files(text)
	want := []string{folder + "/10-site.yaml", folder + "/20-more.yaml", folder + "/30-nothing.yaml"}
	testkit.ErrorIf(t, !reflect.DeepEqual(names, want), "%v", names)
	_, err := Parse(file, text)
	testkit.Refused(t, err, folder+`/20-more.yaml:5: routs: unknown key; did you mean "routes"?`)

	c, err := Parse(file, []byte(strings.Replace(string(text), "routs", "routes", 1)))
	testkit.Must(t, err)
	for _, r := range []struct{ got, want any }{
		{c.Engine.Workers, uint32(3)}, {fmt.Sprint(c.Engine.CPUs), "[1 2 3]"}, {c.Engine.Limits.Flows, uint32(128)},
		{c.Engine.Limits.Sessions, uint32(9)}, {len(c.Ports), 3}, {c.Ports[1].Driver + c.Ports[1].Role, "net_tapcore"},
		{c.Ports[1].MTU, uint32(1600)}, {string(c.Ports[2].Name), "spare"}, {c.Ports[0].Driver, "synth"},
		{len(c.Interfaces), 1}, {fmt.Sprint(c.Interfaces[0].Addresses), "[10.0.0.1/24 10.7.0.1/24]"},
		{len(c.Routes), 2}, {fmt.Sprint(c.Paths[0].QFIDSCP), "map[1:46 2:12 3:18]"},
		{c.Firewall.Uplink.Rules[0].Action + c.Firewall.Uplink.Rules[1].Action, "denypermit"},
		{c.Control.Socket, "/run/a"},
	} {
		testkit.ErrorIf(t, r.got != r.want, "%v, not %v", r.got, r.want)
	}
}

// Each fault has the file in which it stands, and names other files' lines as theirs.
func TestFaultsOfDropIns(t *testing.T) {
	for _, r := range []struct{ text, want string }{
		{"engine:\n  workers: many\n", "/1.yaml:2: engine.workers: needs a whole number"},
		{"ports:\n\t- x\n", "/1.yaml:2: not valid YAML: line 2 is indented by a tab"},
		{"engine: {workers: 1, workers: 2}\n", "/1.yaml:1: engine.workers: given twice, first in line 1"},
		{"\nroutes: [{prefix: 10.0.0.0/24, via: 10.0.0.9}, {prefix: 10.0.0.0/24, via: 10.0.0.8}]\n",
			"/1.yaml:2: routes[1].prefix: 10.0.0.0/24 is already in line 2"},
		{"paths: [{name: b, local: 10.0.0.1, peer: 10.0.0.2}]\n",
			"/1.yaml:1: paths[1]: the path in line 7 of FILE has the same addresses"},
		{"ports: [{name: x, driver: synth, role: core}, {name: x, driver: synth, role: core}]\n",
			`/1.yaml:1: ports[3].name: "x" is already in line 1`},
		{"interfaces: [{name: n3, port: cor}]\n", `/1.yaml:1: interfaces[0].port: there is no port "cor"`},
		{"control: {state: \"${NONE}\"}\n", "/1.yaml:1: control.state: ${NONE}: the environment has no NONE"},
		{"engine: 7\n", `/1.yaml:1: engine: needs a mapping of keys to values, found "7"`},
		{"ports: {name: core}\n", "/1.yaml:1: ports: needs a list, found a mapping"},
		{"a: 1\n---\nb: 1\n", "/1.yaml:2: a second document"},
	} {
		file, text := dropIns(t, base, "1.yaml", r.text)
		_, err := Parse(file, text)
		testkit.Refused(t, err, Folder(file)+strings.ReplaceAll(r.want, "FILE", file))
	}
	for fault, want := range map[string]string{"- a\n": ":1: needs a mapping", "ports: 7\n": ":1: ports: needs a list",
		"engine: 7\n": ":1: engine: needs a mapping"} {
		file, text := dropIns(t, fault, "1.yaml", "engine: {workers: 1}\n"+base)
		_, err := Parse(file, text)
		testkit.Refused(t, err, file+want)
	}
	file, text := dropIns(t, base+"engine: {workers: 17}\n", "1.yaml", "control: {}\n")
	_, err := Parse(file, text)
	testkit.Refused(t, err, file+":8: engine.workers: 17 is not between 1 and 16")
}

// What cannot be a drop-in is refused, not passed over.
func TestNoDropIns(t *testing.T) {
	file, _ := dropIns(t, base)
	testkit.Must(t, os.Mkdir(filepath.Join(Folder(file), "x.yaml"), 0o755))
	_, err := Read(file)
	testkit.Refused(t, err, "x.yaml is no regular file")
	testkit.Must(t, os.Remove(filepath.Join(Folder(file), "x.yaml")))
	testkit.Must(t, os.WriteFile(filepath.Join(Folder(file), "x.yml"), nil, 0o600))
	_, err = Read(file)
	testkit.Refused(t, err, "x.yml: is not read: the names of drop-ins end in .yaml")
	testkit.Must(t, os.RemoveAll(Folder(file)))
	text, err := Read(file)
	testkit.ErrorIf(t, err != nil || string(text) != base, "%v: %s", err, text)
	testkit.Must(t, os.WriteFile(Folder(file), nil, 0o600))
	_, err = Read(file)
	testkit.Refused(t, err, "not a directory")
}

// Aliases are not changed by what lies over one of their uses, and cannot make a small file expensive.
func TestDropInsOverAliases(t *testing.T) {
	file, text := dropIns(t, `control: {restart: &r {delay_ms: 1}}
ports: [&p {name: core, driver: synth, role: core}]
access: {profiles: [{name: a, gtpu: &x {}}]}
`, "1.yaml", "access:\n", "2.yaml", "ports: [{name: core, mtu: 1600}]\ncontrol: {restart: {delay_ms: 2}}\n")
	_, err := Parse(file, text)
	testkit.Refused(t, err, file+":3: access.profiles[0].gtpu: unknown key")
	root := "routes: &r [" + strings.Repeat("{prefix: 10.0.0.0/8},", 9999) + "]\n"
	file, text = dropIns(t, root, "1.yaml", "routes: &a [*a, *a]\nports: *a\n")
	_, err = Parse(file, text)
	testkit.ErrorIf(t, err == nil, "accepted")
}

// A text of several files is shown, kept and applied as one.
func TestShownDropIns(t *testing.T) {
	file, text := dropIns(t, base, "1.yaml", "# hush\nradius:\n  servers: [{address: 10.0.0.9, secret: hush}]\n",
		"2.yaml", "aaa: {users: [{name: a, password: hush}]}\n")
	shown, err := Shown(text)
	testkit.Must(t, err)
	testkit.ErrorIf(t, strings.Contains(string(shown), "hush"), "%s", shown)
	testkit.Equal(t, strings.Count(string(shown), mark), 2, "%s", shown)
	c, err := ParseShown("x", shown)
	testkit.Must(t, err)
	testkit.Equal(t, c.AAA.Users[0].Name, "a", "a user")
	all, err := Parse(file, text)
	testkit.Must(t, err)
	again, err := Parse(file, joined(split(file, text)))
	testkit.Must(t, err)
	testkit.ErrorIf(t, !reflect.DeepEqual(all, again), "another configuration after it was taken apart")
}

func FuzzParts(f *testing.F) {
	f.Add([]byte(base), []byte("ports: [{name: core, mtu: 1600}]\n"))
	f.Add([]byte("a: &a [*a]\n"), []byte("a: *a\n"))
	f.Add([]byte(mark+"x\n"), []byte("\n"+mark))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		text := joined([]part{{text: a}, {name: "b", text: b}})
		c, err := Parse("x.yaml", text)
		testkit.FatalIf(t, (c == nil) != (err != nil), "config %v, error %v", c != nil, err)
		testkit.Equal(t, string(joined(split("x.yaml", text))), string(text), "taken apart")
	})
}
