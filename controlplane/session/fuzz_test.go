// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"maps"
	mrand "math/rand/v2"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// strict is a data plane that enforces the contract: an object once in a transaction; references and deleted objects
// exist.
type strict struct {
	t      *testing.T
	held   map[dptest.ID][]byte
	refuse bool // the next transaction
}

func (d *strict) Commit(_ context.Context, changes []dp.Change) ([]api.Usage, error) {
	if d.refuse {
		d.refuse = false
		return nil, &dp.RefusedError{Code: 22, Text: "PDR 1: no"}
	}
	seen, next := map[dptest.ID]bool{}, map[dptest.ID][]byte{}
	maps.Copy(next, d.held)
	for _, ch := range changes {
		id := dptest.ID{Kind: ch.Kind, Key: ch.Key}
		testkit.FatalIf(d.t, seen[id], "%v twice in one transaction", id)
		seen[id] = true
		if ch.Body != nil {
			next[id] = bytes.Clone(ch.Body) // its memory is used again
		} else if next[id] == nil {
			d.t.Fatalf("%v is deleted but not there", id)
		} else {
			delete(next, id)
		}
	}
	for id, body := range next {
		if id.Kind == api.KindSession {
			d.named(next, body)
		}
	}
	d.held = next
	return nil, nil
}

// named checks that the paths and policers of a session exist.
func (d *strict) named(held map[dptest.ID][]byte, body []byte) {
	var head api.Session
	rest, err := api.ReadRow(body, &head)
	testkit.Must(d.t, err)
	need := func(kind uint32, name []byte) {
		if key := api.CString(name); key != "" && held[dptest.ID{Kind: kind, Key: key}] == nil {
			d.t.Fatalf("session %#x names %s, which is not there", head.SEID, key)
		}
	}
	_, rest, _ = api.TakeRows[api.PDR](rest)
	fars, rest, _ := api.TakeRows[api.FAR](rest)
	for _, f := range fars {
		need(api.KindPath, f.Path[:])
	}
	qers, _, err := api.TakeRows[api.QER](rest)
	testkit.FatalIf(d.t, err != nil || len(fars) != int(head.FARs) || len(qers) != int(head.QERs),
		"%d FARs, %d QERs, %v of %+v", len(fars), len(qers), err, head)
	for _, q := range qers {
		need(api.KindPolicer, q.UplinkPolicer[:])
		need(api.KindPolicer, q.DownlinkPolicer[:])
	}
}

// datagrams are separated by their lengths; the first bit says that the data plane refuses the change.
func datagrams(list ...[]byte) []byte {
	var b []byte
	for _, d := range list {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(d))), d...)
	}
	return b
}

func mustEncode(f *testing.F, h pfcp.Header, m pfcp.Message) []byte {
	h.Type, h.HasSEID = m.MessageType(), true
	b, err := pfcp.Encode(h, m)
	testkit.Must(f, err)
	return b
}

// FuzzManager: after each request of CP functions, sessions, indices, counts and data plane agree. The SEID of a
// datagram's header chooses among the existing sessions.
func FuzzManager(f *testing.F) {
	var made [][]byte
	for i, ue := range []string{"10.46.0.1", "10.46.0.2", "10.46.0.1"} {
		made = append(made, mustEncode(f, pfcp.Header{}, request(uint32(i+1), ue)))
	}
	chosen := request(9, "10.46.0.9")
	chosen.PDR[0].PDI.LocalFTEID = &pfcp.FTEID{Choose: true, WantIPv4: true, WantIPv6: true, HasChooseID: true,
		ChooseID: 3}
	chosen.PDR[0].PDI.UEIP = nil
	chosen.PDR[1].PDI.UEIP = []pfcp.UEIP{{ChooseIPv4: true, ChooseIPv6: true, Destination: true}}
	chosen.QER[0].Correlation = ptr(uint32(5))
	made = append(made, mustEncode(f, pfcp.Header{}, chosen))
	f.Add(datagrams(made...))
	r := mrand.New(mrand.NewPCG(3, 4))
	for range 60 {
		list := append([][]byte{}, made[r.IntN(len(made))], made[r.IntN(len(made))])
		for range 3 {
			list = append(list, mustEncode(f, pfcp.Header{SEID: uint64(r.IntN(3))}, randomChange(r)))
		}
		list = append(list, mustEncode(f, pfcp.Header{SEID: uint64(r.IntN(2))}, &pfcp.SessionDeletionRequest{}))
		f.Add(datagrams(list...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set := testSettings()
		set.Takeover = len(data)%2 == 1
		p, err := Open("", set, slog.New(slog.DiscardHandler))
		testkit.Must(t, err)
		p.x.random = mrand.NewChaCha8([32]byte{1})
		d := &strict{t: t}
		p.client = d
		b := &bench{Manager: p, s: dptest.New(""), t: t}
		for n := 0; len(data) >= 2 && n < 16; n++ {
			length := binary.BigEndian.Uint16(data)
			d.refuse = length&0x8000 != 0
			one := data[2:min(len(data), 2+int(length&0x7fff))]
			data = data[2+len(one):]
			b.one(one)
			b.s.SetHeld(d.held)
			b.checkConsistent()
			testkit.FatalIf(t, t.Failed(), "after %x", one)
		}
		for _, seid := range p.inOrder() {
			b.atOnce(&pfcp.SessionDeletionRequest{}, seid, smf1, &n4.Association{ID: "smf2"})
		}
		if len(p.x.session)+len(p.x.local)+len(p.x.peer)+len(p.x.peer6)+len(p.x.host)+p.x.prefix.size()+
			len(p.x.groups)+len(p.shares.by)+len(p.shares.used)+len(p.x.taken) != 0 {
			t.Errorf("something is left without sessions: %s", b.dump())
		}
	})
}

func (b *bench) one(datagram []byte) {
	h, m, err := pfcp.Decode(datagram)
	if err != nil {
		return
	}
	who := &n4.Association{ID: []string{"smf1", "smf2"}[h.Sequence&1]}
	var seid uint64
	if list := b.inOrder(); len(list) > 0 {
		seid = list[h.SEID%uint64(len(list))]
	}
	b.atOnce(m, seid, who)
}
