// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/kernel"
	"isthmus/controlplane/testkit"
)

// A drain says of each role what it did, and that there was nothing to wait for.
func TestDrainSaysWhatItDid(t *testing.T) {
	for want, d := range map[string]v1.Drained{
		"announcements: there are none\nsign-ins: access.ports is empty, nothing to wait for\n" +
			"associations: none, nothing to wait for\n": {},
		"announcements: 3 withdrawn\nsign-ins: refused; 1 subscriber ends\n" +
			"associations: none, nothing to wait for\n": {
			Announced: 3, SignIn: true, Ended: 1},
		"announcements: 3 stay\nsign-ins: refused; 2 subscribers end\n" +
			"accounting: 4 records wait for a RADIUS server; /var/lib/x keeps them over a reboot too\n" +
			"association a: released\n" +
			"association b: not released: no answer\n" +
			"association c: its CP function agreed, and has not released it yet\n" +
			"sessions over PFCP: 7 left; isthmus show n4\n": {
			Announced: 3, Kept: true, SignIn: true, Ended: 2, Accounting: 4, File: "/var/lib/x", Sessions: 7,
			Associations: []v1.DrainedAssociation{{ID: "a", State: "released"},
				{ID: "b", State: "refused", Why: "no answer"}, {ID: "c", State: "left"}}},
	} {
		testkit.Equal(t, drainWords(&d), want, "words")
	}
}

// The state says that the gateway is drained, and which parts of it.
func TestStatusOfADrain(t *testing.T) {
	testkit.Equal(t, drainState(&v1.Status{}), "", "without a drain")
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, s := range map[string]v1.Status{
		"announcements withdrawn, sign-ins refused; ": {Drain: v1.Drain{SignIns: true}},
		"announcements stay, associations refused (2 left); ": {Associations: 2,
			Drain: v1.Drain{Announced: true, Associations: true}},
		"announcements being withdrawn (5 left); ": {Kernel: []kernel.Status{{Announced: 5}}},
	} {
		s.Drain.Since = since
		got := drainState(&s)
		testkit.ErrorIf(t, !strings.HasPrefix(got, "since 2026-01-02T03:04:05Z: "+want), "%s", got)
	}
}
