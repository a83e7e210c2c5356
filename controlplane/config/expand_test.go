// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/cputest"
	"isthmus/controlplane/testkit"
)

// fleet is one file for many machines.
const fleet = `engine: {workers: "${WORKERS}", idle_sleep: "${SLEEP:-true}"}
control:
  metrics: ${ADDRESS:-127.0.0.1}:${PORT:-9464}
  socket: /run/$${NOT}/$HOME$$
ports:
  - name: access
    driver: pci
    device: ${PCIDEVICE_INTEL_COM_NETDEV}
    role: access
    mac: ${MAC}
  - {name: core, driver: pci, device: "${PCIDEVICE_INTEL_COM_OTHER[1]}", role: "${ROLE:-core}"}
interfaces:
  - {name: n3, port: core, addresses: ["${N3}/24"]}
`

var site = []string{"WORKERS=2", "PORT=1", "PCIDEVICE_INTEL_COM_NETDEV=0000:3b:02.0", "MAC=02:00:00:00:00:07",
	"PCIDEVICE_INTEL_COM_OTHER=0000:3b:02.1,0000:3b:02.2", "N3=192.0.2.1", "ROLE=", "HOME=/root", "NOT=no"}

func TestReferences(t *testing.T) {
	c, err := ParseWith("x.yaml", []byte(fleet), site, nil)
	testkit.Must(t, err)
	for _, r := range []struct{ got, want any }{
		{c.Engine.Workers, uint32(2)}, {c.Engine.IdleSleep, true}, {c.Control.Metrics, "127.0.0.1:1"},
		{c.Control.Socket, "/run/${NOT}/$HOME$$"}, {c.Ports[0].Device, "0000:3b:02.0"},
		{c.Ports[0].MAC.String(), "02:00:00:00:00:07"}, {c.Ports[1].Device, "0000:3b:02.2"},
		{c.Ports[1].Role, "core"}, {c.Interfaces[0].Addresses[0].String(), "192.0.2.1/24"},
	} {
		testkit.ErrorIf(t, r.got != r.want, "%v, not %v", r.got, r.want)
	}
}

// A value is a value, whatever it looks like; keys and comments are no values; a value is expanded once.
func TestReferencesAreNoYAML(t *testing.T) {
	text := func(value string) string {
		return "control: {state: \"${V}\", socket: \"" + value + "\"} # ${COMMENT}\n" + base
	}
	for _, value := range []string{"a, role: core}", "\n- x", "*anchor", "!!int 7", "~", "null", "${W}", "$${W}"} {
		c, err := ParseWith("x.yaml", []byte(text("x")), []string{"V=" + value, "W=w"}, nil)
		testkit.Must(t, err)
		testkit.Equal(t, string(c.Control.State), value, "a value")
	}
	c, err := ParseWith("x.yaml", []byte("control: {state: &a \"${V}\", socket: *a}\n"+base), []string{"V=v"}, nil)
	testkit.Must(t, err)
	testkit.Equal(t, c.Control.State+c.Control.Socket, "vv", "an alias")
	_, err = ParseWith("x.yaml", []byte("\"${V}\": {}\n"+base), []string{"V=engine"}, nil)
	testkit.Refused(t, err, "x.yaml:1: ${V}: unknown key")
}

// What is wrong names line, key and the next step, and never the environment's values.
func TestRefusedReferences(t *testing.T) {
	const secret = "hunter2hunter2"
	long := strings.Repeat("x", 40)
	for _, r := range []struct{ text, want string }{
		{"device: ${NONE}", "x.yaml:4: ports[0].device: ${NONE}: the environment has no NONE: set it for isthmus"},
		{"device: ${NONE[0]}", "the environment has no NONE"},
		{"device: ${S[1]}", "${S[1]}: S has 1 values, separated by commas; the first is [0]"},
		{"device: ${S", "x.yaml:4: ports[0].device: \"${S\": after ${ comes NAME}, NAME[0]} or NAME:-default}"},
		{"device: ${1S}", "after ${ comes NAME}"},
		{"device: ${S-x}", "after ${ comes NAME}"},
		{"device: ${S:-${T}}", "after ${ comes NAME}"},
		{"device: ${}", "after ${ comes NAME}"},
		{"mtu: ${S}", `x.yaml:4: ports[0].mtu: needs a whole number, found "${S}"`},
		{"mtu: " + long + "${S}", `needs a whole number, found "` + long + `${S}"`},
		{"mtu: ${LONG}", `needs a whole number, found "${LONG}"`},
		{"mac: ${S}", `ports[0].mac: "${S}" is no MAC address`},
		{"mac: ${QUOTE}", `ports[0].mac: "${QUOTE}" is no MAC address`},
		{"promiscuous: ${S}", `needs true or false, found "${S}"`},
		{"offload: ${S}", `"${S}" is none of none, encapsulation`},
		{"device: a,${S}", `ports[0].device: "a,${S}" holds a comma`},
		{"xconnect: ${S}", `there is no port "${S}"`},
		{"bond: ${S}", `needs a mapping of keys to values, found "${S}"`},
		{"queues: ${NUMBER}", "17 is not between 0 and 16"},
	} {
		text := "ports:\n  - name: a\n    driver: pci\n    " + r.text + "\n    role: core\n"
		_, err := ParseWith("x.yaml", []byte(text), []string{"S=" + secret, "T=", "NUMBER=17",
			"LONG=" + secret + strings.Repeat(secret, 9), "QUOTE=" + secret + "\"\n"}, nil)
		testkit.Refused(t, err, r.want)
		testkit.ErrorIf(t, strings.Contains(err.Error(), secret[:7]), "%s: %v", r.text, err)
	}
	_, err := Parse("x.yaml", []byte("engine: {workers: \"${N}\"}\n"+base))
	testkit.Refused(t, err, "x.yaml:1: engine.workers: ${N}: the environment has no N")
	_, err = Parse("x.yaml", []byte("ports: [{name: a, driver: pci, device: ${PCI}, role: core}]\n"))
	testkit.Refused(t, err, `x.yaml:1: not valid YAML:`)
	testkit.Refused(t, err, `inside {…} and […] a reference is quoted: "${NAME}"`)
}

func TestManyReferences(t *testing.T) {
	for name, text := range map[string]string{
		"references": "routes:\n" + strings.Repeat("  - {prefix: \"${V}\", via: \"a${V}\"}\n", mostReferences),
		"one value":  "control: {state: \"" + strings.Repeat("${V}", mostReferences+1) + "\"}\n",
		"long":       "control: {state: \"" + strings.Repeat("${LONG}", 100) + "\"}\n",
		"repeated":   "control: {state: \"" + strings.Repeat("${", maxFile/4) + "\"}\n",
	} {
		cputest.Bound(t, 20*time.Second, name, func() {
			environ := []string{"V=some-value", "LONG=" + strings.Repeat("x", 128<<10)}
			_, err := ParseWith("x.yaml", []byte(text), environ, nil)
			testkit.ErrorIf(t, err == nil, "%s: accepted", name)
		})
	}
}

// What is shown is what the file says; a secret that is a reference alone is none.
func TestShownReferences(t *testing.T) {
	text := base + `radius:
  servers: [{address: "${RADIUS:-192.0.2.9}", secret: "${RADIUS_SECRET}"}]
aaa:
  users:
    - {name: a, password: "${PASSWORD:-hush}"}
    - {name: b, password: "hush${PASSWORD}"}
    - {name: c, password: "$${hush}"}
`
	shown, err := Shown([]byte(text))
	testkit.Must(t, err)
	for _, want := range []string{`"${RADIUS:-192.0.2.9}"`, `"${RADIUS_SECRET}"`} {
		testkit.ErrorIf(t, !strings.Contains(string(shown), want), "%s is not in\n%s", want, shown)
	}
	count := strings.Count(string(shown), Hidden)
	testkit.ErrorIf(t, strings.Contains(string(shown), "hush") || count != 3, "%s", shown)
	c, err := ParseWith("x.yaml", []byte(text), []string{"RADIUS_SECRET=s3cret", "PASSWORD=p"}, nil)
	testkit.Must(t, err)
	testkit.Equal(t, string(c.RADIUS.Servers[0].Secret), "s3cret", "a secret")
	testkit.Equal(t, string(c.AAA.Users[1].Password+c.AAA.Users[2].Password), "hushp${hush}", "passwords")
}

func TestTabs(t *testing.T) {
	for text, line := range map[string]string{
		"ports:\n\t- {name: a}\n":                     "2",
		"engine:\n  workers: 1\n\tidle_sleep: true\n": "3",
		"engine:\n  limits:\n  \tflows: 64\n":         "3",
	} {
		_, err := Parse("x.yaml", []byte(text))
		testkit.Refused(t, err, "line "+line+" is indented by a tab; YAML takes spaces alone")
	}
}
