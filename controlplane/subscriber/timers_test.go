// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

// A time of the store has the wall's clock alone. If it is the first that is waited for, a clock that is set does not
// move all the others.
func TestTimersOfTheStore(t *testing.T) {
	l := New(&Settings{}, Options{Now: time.Now})
	l.timers.add(time.Now().Add(time.Hour).Round(0), func() {})
	testkit.ErrorIf(t, l.timers.from == l.timers.from.Round(0), "times are counted from a clock that may be set")
}
