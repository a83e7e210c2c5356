// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"fmt"
	"testing"

	"isthmus/controlplane/config"
	"isthmus/controlplane/testkit"
)

// The file's limits are those of the front ends.
func TestLimitsOfSignIns(t *testing.T) {
	c, err := config.Parse("x.yaml", []byte(`
engine: {limits: {sessions: 500000}}
access:
  pppoe: {limits: {sessions: 400000, per_port: 9, per_line: 8, half_open: 7, half_open_per_line: 6}}
  dhcp: {limits: {subscribers: 300000}}
`))
	testkit.Must(t, err)
	p := pppoeConfig(c)
	of := []int{p.Sessions, p.PerPort, p.PerLine, p.HalfOpen, p.HalfOpenPerLine, dhcpConfig(c).Limits.Subscribers}
	testkit.Equal(t, fmt.Sprint(of), "[400000 9 8 7 6 300000]", "limits")
}
