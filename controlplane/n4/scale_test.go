// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// inTurns sends b.N requests, 50 pending at a time, and expects the same cause for each. Nothing may grow above the
// configured limits.
func inTurns(b *testing.B, m *smf, want pfcp.Cause, request func(i uint64) []byte) {
	b.Helper()
	before := heap()
	b.ResetTimer()
	for base := 0; base < b.N; base += 50 {
		n := min(50, b.N-base)
		for i := range n {
			m.send(request(uint64(base + i)))
		}
		for range n {
			m.must("a refusal").wants(want)
		}
	}
	b.StopTimer()
	const kept = 96 << 20 // answers of 30 s
	if after := heap(); after > before+kept {
		b.Errorf("%d bytes more than before %d requests", after-before, b.N)
	} else {
		b.ReportMetric(float64(max(after, before)-before), "B-more")
	}
}

// Row A13 in full: -bench GuessedSessions -benchtime 1000000x. The guesser has an association.
func BenchmarkGuessedSessions(b *testing.B) {
	h, m := associated(b, func(c *Config) { c.MissAlarm = 20 })
	m.establish(1)
	inTurns(b, m, pfcp.CauseContextNotFound, func(i uint64) []byte {
		return message(pfcp.SessionDeletionRequestType, 1<<40+i, m.next())
	})
	testkit.ErrorIf(b, b.N > 10000 && h.happened("session-id-guessing") == 0, "no alarm")
	testkit.ErrorIf(b, h.fake.Count("smf1") != 1, "a session was hit")
}

// Row A3 in full: -bench NodeIDs -benchtime 2000000x. Unknown peers' names take all places but the configured peer's.
func BenchmarkNodeIDs(b *testing.B) {
	m := newSMF(b, "smf1", "127.0.0.1:0")
	flood := newSMF(b, "x", "127.0.0.2:0")
	cfg := quiet(m.peer())
	cfg.AllowUnknown, cfg.Associations, cfg.AssociationsPerAddress, cfg.Rates.Heartbeats = true, 2, 100, 1<<20
	start(b, cfg, nil, m, flood)
	if r := flood.ask(message(pfcp.AssociationSetupRequestType, 0, flood.next(), nodeIE("first"),
		recoveryIE(time.Now()))); r.cause() != pfcp.CauseAccepted {
		b.Fatalf("cause %d", r.cause())
	}
	inTurns(b, flood, pfcp.CauseNoResources, func(i uint64) []byte {
		return message(pfcp.AssociationSetupRequestType, 0, flood.next(), nodeIE(fmt.Sprintf("x%d", i)),
			recoveryIE(time.Now()))
	})
	m.mustSetUp()
	m.establish(1)
}
