// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/radius"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session"
	"isthmus/controlplane/testkit"
)

var pipesFile = strings.Replace(file, "- {name: home,", "- {name: home, scheduler: home,", 1) + `
schedulers:
  - {port: access, rate: 1Gbit, subports: {pipes: 16},
     profiles: [{name: first, rate: 1Mbit}, {name: home, rate: 10Mbit}, {name: gold, rate: 100Mbit}]}
`

// pipeProfile is that of the session.
func (b *bench) pipeProfile(h *home) string { return api.CString(b.object(h).Line.PipeProfile[:]) }

func pair(text string) radius.Attribute {
	return radius.Attribute{Type: radius.CiscoAVPair, Value: []byte(text)}
}

// The pipe's profile is authentication's, else the profile's, and a CoA or a reload changes it on line.
func TestPipeProfile(t *testing.T) {
	b := start(t, nil)
	b.Configure(SettingsOf(parse(t, pipesFile)))
	h := b.up(request("anna", 1))
	testkit.Equal(t, b.pipeProfile(h), "home", "the profile's")
	testkit.Equal(t, b.coa(h, named("scheduler=gold")), aaa.OK, "CoA")
	testkit.Equal(t, b.pipeProfile(h), "gold", "after a CoA")
	testkit.Equal(t, b.coa(h, named("scheduler=tin")), aaa.BadValue, "CoA of a profile that is not there")
	testkit.Equal(t, b.pipeProfile(h), "gold", "after a refusal")
	testkit.Equal(t, b.coa(h, pair("subscriber:scheduler=")), aaa.OK, "CoA")
	testkit.Equal(t, b.pipeProfile(h), "home", "the profile's again")
	puts := b.layer.puts
	b.Configure(SettingsOf(parse(t, strings.Replace(pipesFile, "scheduler: home,", "", 1))))
	b.pass(time.Second)
	testkit.Equal(t, b.layer.puts, puts+1, "transactions of a reload")
	testkit.Equal(t, b.pipeProfile(h), "", "the scheduler's first")
	b.judge.verdict.Plan.Scheduler = "gold"
	testkit.Equal(t, b.pipeProfile(b.up(request("bob", 2))), "gold", "authentication's")
	b.judge.verdict.Plan.Scheduler = "tin"
	testkit.Equal(t, b.pipeProfile(b.up(request("carl", 3))), "", "one that is not there is left out")
	why := b.Attempts("carl", 1)[0].Why
	testkit.Equal(t, why, `let in without scheduler: port "access" has no scheduler with a profile "tin"`, "words")
	testkit.Equal(t, b.events[len(b.events)-2], "subscriber.left-out scheduler", "event")
}

// A file without a pipe's profile that authentication named ends no subscriber: neither by a reload nor by a restart.
func TestPipeProfileIsTakenAway(t *testing.T) {
	without := SettingsOf(parse(t, strings.Replace(pipesFile, ", {name: gold, rate: 100Mbit}", "", 1)))
	for _, again := range []func(b *bench, records []session.LineRecord){
		func(b *bench, _ []session.LineRecord) { b.Configure(without) },
		func(b *bench, records []session.LineRecord) {
			b.open(func(s *Settings) { *s = *without })
			b.Restore(records)
		},
	} {
		b := start(t, func(s *Settings) { *s = *SettingsOf(parse(t, pipesFile)) })
		b.judge.verdict.Plan.Scheduler = "gold"
		h := b.up(request("anna", 1))
		seid := seidOf(h.session.ID())
		b.events = nil
		record := session.LineRecord{SEID: seid, Data: b.layer.records[seid], Session: b.layer.sessions[seid]}
		again(b, []session.LineRecord{record})
		b.pass(time.Second)
		testkit.FatalIf(t, b.layer.sessions[seid] == nil, "she is ended: %v", b.events)
		testkit.Equal(t, b.pipeProfile(h), "home", "the profile's")
		testkit.Equal(t, strings.Join(b.events, ", "), "subscriber.left-out scheduler", "events")
		testkit.Equal(t, b.coa(h, pair("subscriber:max=3")), aaa.OK, "another change")
	}
}

// A subscriber without a free pipe has the reason in its history. A freed pipe goes to the next; over a restart each
// keeps its own.
func TestNoPipeFree(t *testing.T) {
	s := dptest.Start(t)
	store := filepath.Join(t.TempDir(), "sessions.db")
	g := &gateway{bench: start(t, nil), lines: map[string]*rules.Shaping{"access": {Port: "access",
		Profile: "first", Subports: []rules.ShapingSubport{{Worker: 1, Pipes: 2}}}}}
	g.run(t, s, store)
	pipes := func() (list [2]uint32) {
		for id, body := range s.Held() {
			var head api.Session
			if id.Kind != api.KindSession {
				continue
			}
			_, err := api.ReadRow(body, &head)
			testkit.Must(t, err)
			testkit.ErrorIf(t, head.Worker != 1 || api.CString(head.PipeProfile[:]) != "first", "%+v", head)
			list[head.Pipe]++
		}
		return list
	}
	anna := g.signInUp(request("anna", 1))
	g.signInUp(request("bob", 2))
	testkit.Equal(t, pipes(), [2]uint32{1, 1}, "sessions of each pipe")
	var refusal error
	g.SignIn(request("carl", 3), &home{t: t}, func(s access.Session, v *access.Verdict) {
		s.Up(access.Families{V4: true}, 1492, access.KeepAlive{}, func(err error) {
			refusal = err
			s.Down(access.LostService)
		})
	})
	g.until("an answer", func() bool { return refusal != nil })
	why := ""
	for _, a := range g.Attempts("carl", 10) {
		why += a.Why
	}
	testkit.ErrorIf(t, !strings.Contains(why, "all pipes of port access are taken"), "%q", why)
	anna.session.Down(access.UserRequest)
	g.until("anna gone", func() bool { return len(g.by.find("anna")) == 0 })
	g.settle()
	g.signInUp(request("carl", 3))
	testkit.Equal(t, pipes(), [2]uint32{1, 1}, "sessions of each pipe")
	g.end()
	g.run(t, s, store)
	testkit.ErrorIf(t, pipes() != [2]uint32{1, 1} || g.outcome.Put != 0, "after a restart: %v %+v", pipes(),
		g.outcome)
}
