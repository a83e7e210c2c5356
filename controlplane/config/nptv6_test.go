// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

func nptv6File(t *testing.T, pairs string) string {
	return with(t, "lookup: destination", "nptv6: ["+pairs+"], lookup: destination")
}

func TestNPTv6(t *testing.T) {
	c, err := Parse("x.yaml", []byte(nptv6File(t, `{inside: "2001:db8:1::/48", outside: "2001:db8:7::/48"}, `+
		`{inside: "fd00::/16", outside: "2002::/16"}, `+
		`{inside: "fc00:1:2:3::/64", outside: "2001:db8:8:9::/64"}`)))
	testkit.Must(t, err)
	n := c.Instances[1].NPTv6
	testkit.ErrorIf(t, len(n) != 3 || n[0].Inside.String() != "2001:db8:1::/48" ||
		n[2].Outside.String() != "2001:db8:8:9::/64" || len(c.Instances[0].NPTv6) != 0, "%+v", n)
	for _, r := range []struct{ pairs, want string }{
		{`{inside: "fd00::/48"}`, "x.yaml:11: instances[1].nptv6[0].outside: missing"},
		{`{inside: 10.0.0.0/24, outside: "2001:db8:7::/48"}`,
			"nptv6[0].inside: 10.0.0.0/24 is no IPv6 prefix of 16 to 64 bits"},
		{`{inside: "fd00::/48", outside: "2001:db8:7::/72"}`,
			"nptv6[0].outside: 2001:db8:7::/72 is no IPv6 prefix of 16 to 64 bits"},
		{`{inside: "fc00::/8", outside: "2000::/8"}`, "fc00::/8 is no IPv6 prefix of 16 to 64 bits"},
		{`{inside: "fd00::1/48", outside: "2001:db8:7::/48"}`,
			"fd00::1/48 has host bits set; the network is fd00::/48"},
		{`{inside: "fe80::/64", outside: "2001:db8:7:1::/64"}`, "fe80::/64 holds more than unicast addresses"},
		{`{inside: "fd00::/48", outside: "ff0e::/48"}`, "ff0e::/48 holds more than unicast addresses"},
		{`{inside: "fd00::/48", outside: "2001:db8:7::/56"}`,
			"nptv6[0].outside: fd00::/48 and 2001:db8:7::/56 differ in length: write both as /56"},
		{`{inside: "fd00::/48", outside: "fd00::/48"}`, "nptv6[0].outside: fd00::/48 overlaps fd00::/48"},
		{`{inside: "fd00::/48", outside: "2001:db8:7::/48"}, ` +
			`{inside: "fd00:0:0:4::/64", outside: "2001:db8:8:1::/64"}`,
			"nptv6[1].inside: fd00:0:0:4::/64 overlaps fd00::/48"},
		{`{inside: "fd00::/48", outside: "2001:db8:1::/48"}`,
			"2001:db8:1::/48 overlaps the pool 2001:db8:1::/48, where subscribers are"},
		{`{inside: "fd00::/64", outside: "2001:db8::/64"}`,
			"2001:db8::/64 holds 2001:db8::1, which is an interface's, line 6"},
	} {
		_, err := Parse("x.yaml", []byte(nptv6File(t, r.pairs)))
		if err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: %v, want %q", r.pairs, err, r.want)
		}
	}
	_, err = Parse("x.yaml", []byte(with(t, "{name: access,",
		`{name: access, nptv6: [{inside: "fd00::/48", outside: "2001:db8:7::/48"}],`)))
	testkit.Refused(t, err, "instances[0].nptv6: given with lookup none: the way back needs destination")
}
