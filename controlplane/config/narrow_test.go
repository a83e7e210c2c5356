// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// Tunnels over IPv4 and IPv6 need 44 and 64 bytes more than a full packet.
func TestNarrowPorts(t *testing.T) {
	const endpoints = `endpoints: [10.1.0.1, "2001:db8::1"]`
	for _, test := range []struct{ port, endpoints, want string }{
		{"role: core}", endpoints, "[{p0 1500 1564 x.yaml 2}]"},
		{"role: core, mtu: 1563}", endpoints, "[{p0 1563 1564 x.yaml 2}]"},
		{"role: core, mtu: 1564}", endpoints, "[]"},
		{"role: core, mtu: 1544}", "endpoints: [10.1.0.1]", "[]"},
		{"role: core, mtu: 1543}", "endpoints: [10.1.0.1]", "[{p0 1543 1544 x.yaml 2}]"},
	} {
		text := strings.Replace(mobile, "role: core}", test.port, 1)
		c, err := Parse("x.yaml", []byte(strings.Replace(text, endpoints, test.endpoints, 1)))
		testkit.Must(t, err)
		testkit.Equal(t, fmt.Sprint(c.Narrow), test.want, "%s", test.port)
	}
}
