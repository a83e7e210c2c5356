// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

func TestMirrors(t *testing.T) {
	c := mustParse(t, base+"mirrors:\n  - {name: a, to: {erspan: 10.0.0.9, session: 7}, sample: 10, match: "+
		"{protocol: tcp, remote_port: 80}}\n")
	m := c.Mirrors[0]
	testkit.ErrorIf(t, m.Direction != "both" || m.Sample != 10 || m.To.Session != 7 ||
		m.Match.RemotePort.String() != "80-80", "%+v", m)
}

func TestMirrorsRefused(t *testing.T) {
	for _, row := range []struct{ mirror, want string }{
		{"{name: a}", "x.yaml:9: mirrors[0].to: missing"},
		{"{name: a, to: {}}", "x.yaml:9: mirrors[0].to: needs one of port, path and erspan"},
		{"{name: a, to: {port: core, erspan: 10.0.0.9}}", "needs one of port, path and erspan"},
		{"{name: a, to: {port: cor}}", `x.yaml:9: mirrors[0].to.port: there is no port "cor"; did you mean "core"?`},
		{"{name: a, to: {path: nowhere, teid: 1}}", `mirrors[0].to.path: there is no path "nowhere"`},
		{"{name: a, to: {path: upf}}", "mirrors[0].to.teid: goes with path"},
		{"{name: a, to: {port: core, teid: 1}}", "mirrors[0].to.teid: goes with path"},
		{"{name: a, to: {port: core, session: 1}}", "mirrors[0].to.session: belongs to erspan"},
		{"{name: a, to: {port: core, dscp: 1}}", "have no outer header"},
		{"{name: a, to: {erspan: 224.0.0.1}}", "mirrors[0].to.erspan: 224.0.0.1 is no host's address"},
		{"{name: a, to: {erspan: 10.0.0.1}}", "is an address of ours, line 5"},
		{"{name: a, to: {erspan: 10.0.0.9, session: 1024}}", "not between 0 and 1023"},
		{"{name: a, to: {port: core}, snap: 20}", "mirrors[0].snap: 20 is less than 64"},
		{"{name: a, to: {port: core}, sample: 0}", "sample: 0 is not between"},
		{"{name: a, to: {port: core}, match: {ue: 10.45.0.1/16}}",
			"mirrors[0].match.ue: 10.45.0.1/16 has host bits set"},
		{"{name: a, to: {port: core}, match: {ue_port: 80}}", "needs protocol tcp, udp or sctp"},
		{"{name: a, to: {port: core}, match: {instance: nowhere}}", `there is no network instance "nowhere"`},
		{"{name: a, to: {port: core}}\n  - {name: a, to: {port: core}}", `mirrors[1].name: "a" is already in line 9`},
	} {
		_, err := Parse("x.yaml", []byte(base+"mirrors:\n  - "+row.mirror+"\n"))
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", row.mirror, err, row.want)
		}
	}
}
