// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// The data plane refuses each session without a pipe of a port with a scheduler: nobody could sign in there.
func TestAccessPortWithScheduler(t *testing.T) {
	const text = `
ports: [{name: access, driver: synth, role: access}, {name: core, driver: synth, role: core}]
interfaces: [{name: core, port: core, addresses: [10.6.0.1/24]}]
instances: [{name: internet, interfaces: [core], lookup: destination}]
access:
  ports: [{port: access, pppoe: true}]
  profiles: [{name: home, instance: internet}]
`
	_, err := Parse("x.yaml", []byte(text))
	testkit.Must(t, err)
	_, err = Parse("x.yaml", []byte(text+`schedulers:
  - {port: access, rate: 1Gbit, subports: {count: 1, pipes: 16}, profiles: [{name: p, rate: 10Mbit}]}
`))
	testkit.ErrorIf(t, err == nil || !strings.Contains(err.Error(), "who signs in has no pipe"), "%v", err)
}
