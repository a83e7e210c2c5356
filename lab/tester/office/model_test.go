// SPDX-License-Identifier: Apache-2.0

package office

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
	"isthmus/lab/tester"
	"isthmus/traffic/job"
)

// model is a gateway, its links and the machine that it is measured on.
type model struct {
	p *tester.Checked
	e Engine // converts

	limit       float64 // packets per second that are forwarded at most
	tester      float64 // that the tester can offer
	weakSeconds float64 // trials of this length or longer do only weak of the limit; 0: none
	weak        float64
	dead        uint // bits of streams of which nothing arrives, in the first deadTrials trials (0: in all)
	deadTrials  int
	otherPort   bool // they arrive at the wrong one
	foreign     uint64
	refuses     bool    // the port of the dead ones accepts no packets
	wrong       float64 // part of what arrives

	disturbFrom, disturbTo int     // these trials are disturbed
	disturbLoss            float64 // and lose this part
	late                   int     // in this trial the tester falls behind without a reason; 0: none
	stopAt                 int     // this trial is interrupted; 0: none
	failAt                 int     // the link goes down in this one; 0: none

	trials            int
	shortest, longest float64
}

func (m *model) Trial(rate, seconds float64) (*tester.Trial, error) {
	m.trials++
	if m.trials == 1 {
		m.shortest = seconds
	}
	m.shortest, m.longest = math.Min(m.shortest, seconds), math.Max(m.longest, seconds)
	if m.trials == m.failAt {
		return nil, errors.New("the link went down: core")
	}
	t, counts := &job.Trial{Seconds: seconds}, make([]job.StreamCount, len(m.p.Streams))
	if m.trials == m.stopAt {
		t.Interrupted = 1
		t.Seconds /= 4
	}
	offered, limit, part := math.Min(rate, m.tester), m.limit, 1.0
	if m.trials == m.late {
		offered *= 0.9
	}
	if m.weakSeconds > 0 && seconds >= m.weakSeconds {
		limit *= m.weak
	}
	if offered > limit {
		part = limit / offered
	}
	if m.trials >= m.disturbFrom && m.trials <= m.disturbTo {
		t.Disturbed = job.DisturbedSteal
		part *= 1 - m.disturbLoss
	}
	shares := 0
	for i := range m.p.Streams {
		shares += m.p.Streams[i].Share
	}
	for i := range counts {
		pps := 1000.0
		if share := m.p.Streams[i].Share; share > 0 {
			pps = offered * float64(share) / float64(shares)
		}
		m.stream(i, &counts[i], pps*t.Seconds, part)
	}
	m.addUp(t, counts, rate)
	return m.e.result(t, counts), nil
}

func (m *model) stream(i int, c *job.StreamCount, sent, part float64) {
	dead := m.dead&(1<<i) != 0 && (m.deadTrials == 0 || m.trials <= m.deadTrials)
	size := uint64(500)
	if i == 0 {
		size = 100
	}
	c.Sent = uint64(sent + 0.5)
	if !dead {
		c.Received = uint64(float64(c.Sent)*part + 0.5)
	}
	c.Lost = c.Sent - c.Received
	c.ReceivedBytes, c.ReceivedL3Bytes = c.Received*size, c.Received*(size-18)
	c.Wrong[slices.Index(wrongKinds[:], "header")] = uint64(float64(c.Received) * m.wrong)
	if dead && m.otherPort {
		c.Wrong[0] = c.Sent
	}
	if dead && m.refuses {
		c.Refused = c.Sent
	}
	if c.Received > 0 && m.wrong > 0 {
		c.WrongKept = 1
		c.WrongFrame[0] = job.WrongFrame{Kind: 2, Offset: 46, Length: 100, Flow: 17, Kept: 60}
		copy(c.WrongFrame[0].Where[:], "gtpu.teid")
	}
	for k := uint64(0); k < 1000 && c.Received > 0; k++ { // 10 to 20 us
		c.Latency.Bucket[bucketOf(10000+k*10)]++
		c.Latency.Count, c.Latency.Sum, c.Latency.Min, c.Latency.Max = k+1, c.Latency.Sum+10000+k*10, 10000,
			10000+k*10
	}
}

// bucketOf is the inverse of lowest.
func bucketOf(ticks uint64) int {
	i := 0
	for i+1 < job.Buckets && lowest(i+1) <= ticks {
		i++
	}
	return i
}

func (m *model) addUp(t *job.Trial, counts []job.StreamCount, rate float64) {
	var shared, judged, lost uint64
	for i := range counts {
		c := &counts[i]
		t.Sent, t.Received, t.Lost = t.Sent+c.Sent, t.Received+c.Received, t.Lost+c.Lost
		for _, n := range c.Wrong {
			t.Wrong += n
		}
		if m.p.Streams[i].Share > 0 {
			shared += c.Sent
		}
		if m.p.Streams[i].Expect == nil {
			judged, lost = judged+c.Sent, lost+c.Lost
		}
	}
	if judged > 0 {
		t.LossRatio = float64(lost) / float64(judged)
	}
	t.OfferedPps = float64(shared) / t.Seconds
	if !math.IsInf(rate, 1) && t.OfferedPps < rate*0.995 {
		t.TesterLimited = 1
	}
	t.Foreign = m.foreign
}

// profile is the text of three streams: two that share the rate of `run`, and a policed one.
func profile(run string) string {
	const send = "send: [{ethernet: {destination: 02:00:00:00:00:01, source: 02:00:00:00:00:02}}]"
	return "name: test\nports: [{name: access, driver: net_null}, {name: core, driver: net_null}]\nstreams:\n" +
		"- {name: up, port: access, sink: core, share: 3, size: 100, " + send + "}\n" +
		"- {name: down, port: core, sink: access, size: 500, " + send + "}\n" +
		"- {name: policed, port: access, sink: core, rate: 1kpps, size: 500, " + send + ",\n" +
		"   expect: {rate: 3856kbit, layer: l3, p99_us: 25}}\n" +
		"run: {latency: {at: [10%, 90%]}, " + run + "}\n"
}

const (
	aFixed  = "mode: fixed, rate: 1Mpps, search: {goals: [{loss: 0}, {loss: 1%}]}"
	aSearch = "mode: search, search: {goals: [{loss: 0}, {loss: 1%}]}"
)

type bench struct {
	t      *testing.T
	m      model
	r      tester.Result
	events []string
}

func newBench(t *testing.T, text string) *bench {
	t.Helper()
	p, err := tester.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, m: model{p: p, limit: 3e6, tester: 20e6}}
	b.m.e.profile, b.m.e.ready.TSCHz = p, 1e9
	return b
}

// run runs it; every trial that begins ends, unless the source failed.
func (b *bench) run() *bench {
	b.t.Helper()
	Run(b.m.p, &b.m, func(t *tester.Trial, ended bool) {
		testkit.ErrorIf(b.t, ended != (len(b.events)%2 == 1), "an event out of turn")
		b.events = append(b.events, t.Purpose)
		if ended && b.events[len(b.events)-2] != t.Purpose {
			b.t.Errorf("begun as %s, ended as %s", b.events[len(b.events)-2], t.Purpose)
		}
	}, &b.r)
	Judge(b.m.p, &b.r)
	testkit.Equal(b.t, len(b.events)/2, len(b.r.Trials), "trials")
	return b
}

func (b *bench) is(status int, verdict string) {
	b.t.Helper()
	testkit.ErrorIf(b.t, b.r.Status != status || !strings.HasPrefix(b.r.Verdict, verdict), "%d, %s", b.r.Status,
		b.r.Verdict)
}

func (b *bench) true(is bool, what string) {
	b.t.Helper()
	testkit.ErrorIf(b.t, !is, "%s\nsearch %+v\nreference %+v, maximum %v, %d trials", what, b.r.Search,
		b.r.Reference, b.r.MaximumPPS, len(b.r.Trials))
}

func (b *bench) count(purpose string, used bool) (n int) {
	for i := range b.r.Trials {
		if b.r.Trials[i].Purpose == purpose && b.r.Trials[i].Used == used {
			n++
		}
	}
	return n
}

func (b *bench) purposes() string {
	var list []string
	for i := range b.r.Trials {
		list = append(list, fmt.Sprintf("%s %g", b.r.Trials[i].Purpose, b.r.Trials[i].RatePPS))
	}
	return strings.Join(list, ", ")
}
