// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"
	"time"

	"isthmus/controlplane/measure"
	"isthmus/controlplane/testkit"
)

// A phase's first second is shown, without counts from before the page's start.
func TestFirstSecondOfAPhase(t *testing.T) {
	s := &sampler{}
	timing := func(n uint64) measure.Timing {
		return measure.Timing{Requests: n, Buckets: []measure.Bucket{{Seconds: 0.5, Requests: n}}}
	}
	now := time.Unix(1e9, 0)
	for _, row := range []struct {
		all  map[string]measure.Timing
		want map[string]float32
	}{
		{map[string]measure.Timing{"queue": timing(9)}, map[string]float32{"queue, 99 %": unknown}},
		{map[string]measure.Timing{"queue": timing(9), "session": timing(1)},
			map[string]float32{"queue, 99 %": unknown, "session, 99 %": 500}},
		{map[string]measure.Timing{"queue": timing(10), "session": timing(1)},
			map[string]float32{"queue, 99 %": 500, "session, 99 %": unknown}},
	} {
		s.list = s.list[:0]
		now = now.Add(time.Second)
		s.rates.begin(now)
		s.phases(row.all)
		testkit.Equal(t, len(s.list), len(row.want), "figures")
		for _, f := range s.list {
			want := row.want[f.name]
			testkit.ErrorIf(t, f.v != want && !(f.v != f.v && want != want), "%s: %v, not %v",
				f.name, f.v, want)
		}
	}
}
