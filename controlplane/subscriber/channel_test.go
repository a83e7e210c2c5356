// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"log/slog"
	"testing"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

// What cannot go down is counted, and the loop says so.
func TestFramesLost(t *testing.T) {
	l := New(SettingsOf(parse(t, file)), Options{Frames: NewChannel("/nobody", slog.New(slog.DiscardHandler))})
	l.Send(&access.Frame{})
	testkit.Equal(t, l.FramesLost(), 1, "lost frames")
}
