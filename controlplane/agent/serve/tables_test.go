// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"testing"
	"time"

	"isthmus/controlplane/n4"
	"isthmus/controlplane/testkit"
)

// An association is failed since it failed, not since it was set up.
func TestAssociationSince(t *testing.T) {
	r := n4.AssociationRow{State: "up", Since: time.Unix(1000, 0)}
	testkit.Equal(t, associationOf(&r).Since.Unix(), 1000, "up")
	r.State, r.FailedAt = "failed", time.Unix(2000, 0)
	testkit.Equal(t, associationOf(&r).Since.Unix(), 2000, "failed")
}
