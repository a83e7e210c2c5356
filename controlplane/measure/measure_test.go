// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"isthmus/controlplane/testkit"
)

func TestHistograms(t *testing.T) {
	var none *Set
	none.Request("x", time.Second)
	none.OwnRequest("x", time.Second)
	none.SignIn("total", time.Second)
	none.Depth("n6", "3", 1)
	testkit.Equal(t, len(none.Requests())+len(none.SignIns()), 0, "requests, sign-ins")
	none.Batch(1, 2)
	none.Commit(time.Second)
	none.Write(time.Second)

	s := New()
	s.Request("session-deletion-request", 3*time.Millisecond)
	s.OwnRequest("session-report-request", time.Second)
	s.SignIn("total", time.Millisecond)
	s.Depth("n6", "3", 40)
	s.Batch(256, 1000)
	s.Commit(time.Millisecond)
	s.Write(time.Microsecond)
	r := prometheus.NewPedanticRegistry()
	testkit.Must(t, r.Register(s))
	families, err := r.Gather()
	testkit.Must(t, err)
	testkit.Equal(t, len(families), 8, "families")
	for _, f := range families {
		h := f.GetMetric()[0].GetHistogram()
		testkit.Equal(t, h.GetSampleCount(), 1, "%s", f.GetName())
		testkit.ErrorIf(t, len(h.GetPositiveSpan()) != 1, "%s has no native histogram", f.GetName())
		testkit.ErrorIf(t, len(h.GetBucket()) > 17, "%s has %d classic buckets", f.GetName(),
			len(h.GetBucket()))
	}
}

// Measurements of the page.
func TestRequests(t *testing.T) {
	s := New()
	s.Request("a", 3*time.Millisecond)
	s.Request("a", 20*time.Millisecond)
	s.Request("b", time.Microsecond)
	s.SignIn("total", 20*time.Millisecond)
	testkit.ErrorIf(t, len(s.SignIns()) != 1 || s.SignIns()["total"].Requests != 1, "%+v", s.SignIns())
	all := s.Requests()
	testkit.Equal(t, len(all), 2, "messages")
	a := all["a"]
	testkit.Equal(t, a.Requests, 2, "requests")
	testkit.ErrorIf(t, a.Seconds < 0.0229 || a.Seconds > 0.0231, "took %v s", a.Seconds)
	testkit.Equal(t, len(a.Buckets), len(seconds), "buckets")
	for _, b := range a.Buckets {
		want := uint64(0)
		if b.Seconds >= 0.003 {
			want++
		}
		if b.Seconds >= 0.02 {
			want++
		}
		testkit.Equal(t, b.Requests, want, "at most %v s", b.Seconds)
	}
}

func BenchmarkRequest(b *testing.B) {
	s := New()
	for b.Loop() {
		s.Request("session-establishment-request", 3*time.Millisecond)
	}
}
