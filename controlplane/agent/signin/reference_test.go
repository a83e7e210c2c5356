// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"fmt"
	"testing"

	"isthmus/controlplane/access"
	"isthmus/controlplane/dhcp"
	"isthmus/controlplane/pppoe"
	"isthmus/controlplane/subscriber"
	"isthmus/controlplane/testkit"
)

func TestReferenceSignIns(t *testing.T) {
	var ends, dialled, leased [][]string
	for c := access.Cause(0); c < 32; c++ {
		if text := subscriber.CauseText(c); text != "" {
			ends = append(ends, []string{fmt.Sprint(uint32(c)), "`" + text + "`"})
		}
	}
	for _, c := range new(pppoe.Server).Counts() {
		dialled = append(dialled, []string{"`" + c.Name + "`", testkit.Sentence(c.Doc)})
	}
	for _, c := range new(dhcp.Server).Counts() {
		leased = append(leased, []string{"`" + c.Name + "`", testkit.Sentence(c.Doc)})
	}
	var p testkit.Page
	p.Text("Why one subscriber cannot sign in: [running.md](../running.md#subscriber-x-cannot-sign-in).")
	p.Section("PPPoE counters")
	p.Text("Metric `isthmus_signin_protocol_events_total`, `protocol` is `pppoe`.")
	p.Table("what | meaning", dialled)
	p.Section("DHCP and router advertisement counters")
	p.Text("The same metric, `protocol` is `dhcp`.")
	p.Table("what | meaning", leased)
	p.Section("Why sessions end")
	p.Text("Acct-Terminate-Cause (RFC 2866 §5.10), in `isthmus_subscribers_ended_total` and `subscriber.down`.")
	p.Table("number | cause", ends)
	p.Compare(t, "signin.md", "Sign-in: counters and causes")
}
