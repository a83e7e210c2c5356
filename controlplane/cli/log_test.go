// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

// 2,000 datagrams do not make 2,000 lines, other messages are logged beside them, and what was left out is counted.
func TestLinesOfOneMessageAreBounded(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(1000, 0)
	of := &messages{now: func() time.Time { return now }}
	log := slog.New(limited{slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelInfo}), of})
	for range 2000 {
		log.With("from", "192.0.2.1").Warn("a datagram")
	}
	log.Info("something rare")
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	testkit.Equal(t, len(lines), linesOfMessage+1, "lines")
	testkit.ErrorIf(t, !strings.Contains(lines[linesOfMessage], "something rare"), "%s", lines[linesOfMessage])
	now = now.Add(lineWindow)
	held, ok := of.open("a datagram")
	testkit.ErrorIf(t, !ok || held != 2000-linesOfMessage, "%v, %d not logged", ok, held)
}
