// SPDX-License-Identifier: Apache-2.0

package session

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/testkit"
)

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	testkit.Must(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSnapshot is one snapshot of 65,536 sessions with a URR each. All, or one in ten, had packets since the last.
// dptest's part is small: its answer is ready. Bytes are the growth of the store's file, without compaction.
func BenchmarkSnapshot(b *testing.B) {
	const sessions, inMessage = 65536, 546 // rows of 64 KiB
	for name, every := range map[string]int{"all": 1, "tenth": 10, "none": sessions + 1} {
		b.Run(name, func(b *testing.B) {
			s, path := dptest.Start(b), b.TempDir()+"/s.db"
			p, err := Open(path, testSettings(), nil)
			testkit.Must(b, err)
			defer p.Close()
			c, err := dp.Dial(b.Context(), s.Path)
			testkit.Must(b, err)
			defer c.Close()
			p.Attach(c)
			rows := make([]api.URRRow, sessions)
			for i := range rows {
				seid := p.x.seid()
				p.x.enter(&rules.Session{SEID: seid}, p.number(), p.x.owner("smf1"))
				rows[i] = urr(seid, 1, 3, 1e6+uint64(i), 1e7+uint64(i))
			}
			answers := func() {
				var bodies [][]byte
				for some := rows; len(some) > 0; some = some[min(len(some), inMessage):] {
					bodies = append(bodies, api.AppendRows(nil, some[:min(len(some), inMessage)]))
				}
				s.SetTable(api.TableURR, bodies...)
			}
			size := func() int64 {
				info, err := os.Stat(path)
				testkit.Must(b, err)
				return info.Size()
			}
			answers()
			testkit.Must(b, p.Snapshot(b.Context(), c))
			used, written := time.Duration(0), int64(0)
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				for i := range rows {
					if i%every == every-1 {
						rows[i].Bytes[1] += 1000
						rows[i].Bytes[2] += 10000
						rows[i].Packets[2]++
					}
				}
				answers()
				before, at := processorTime(b), size()
				b.StartTimer()
				testkit.Must(b, p.Snapshot(b.Context(), c))
				b.StopTimer()
				used, written = used+processorTime(b)-before, written+size()-at
				b.StartTimer()
			}
			b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "CPU-ms/op")
			b.ReportMetric(float64(written)/float64(b.N), "written-B/op")
		})
	}
}

// BenchmarkResume carries the usage of 65,536 sessions over to another data plane, into thresholds, too.
func BenchmarkResume(b *testing.B) {
	const sessions = 65536
	p, err := Open(b.TempDir()+"/s.db", testSettings(), nil)
	testkit.Must(b, err)
	defer p.Close()
	p.Attach(willing{})
	rows := make([]api.URRRow, sessions)
	for i := range rows {
		s, _, bad := rules.Establish(p.set, p.x, request(1, "10.45.0.1"))
		testkit.FatalIf(b, bad != nil, "%v", bad)
		s.SEID = p.x.seid()
		p.x.enter(s, p.number(), p.x.owner("smf1"))
		rows[i] = urr(s.SEID, 1, 3, 1e3+uint64(i), 1e4)
	}
	used := time.Duration(0)
	for boot := range uint64(b.N) {
		b.StopTimer()
		p.boot = boot + 1
		testkit.FatalIf(b, !p.takeRows(boot+1, rows), "not in step")
		b.StartTimer()
		before := processorTime(b)
		p.resume(boot + 2)
		used += processorTime(b) - before
	}
	b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "CPU-ms/op")
}
