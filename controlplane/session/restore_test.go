// SPDX-License-Identifier: Apache-2.0

package session

import (
	"os"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/session/store"
	"isthmus/controlplane/testkit"
)

// A restored store has who signed in, and of CP functions nothing but a later recovery time stamp.
func TestRestore(t *testing.T) {
	path := t.TempDir() + "/sessions.db"
	t.Run("before", func(t *testing.T) {
		b := start(t, path, testSettings())
		h := &heard{events: make(chan api.Event, 9), done: make(chan func(), 9), ended: make(chan uint64, 9)}
		b.SetLines(h)
		testkit.Must(t, b.put(lineOf(77, "10.45.0.2"), `{"a":1}`))
		wants(t, pfcp.CauseAccepted, b.establish(smf1, request(1, "10.45.0.5")))
		testkit.Must(t, b.KeepAssociation(n4.StoredAssociation{ID: "smf1"}))
	})
	now := time.Now()
	for name, row := range map[string]struct{ store, former time.Time }{
		"long ago":               {time.Unix(1700000000, 0), time.Time{}},
		"by a clock ahead":       {now.Add(time.Hour).Truncate(time.Second), time.Time{}},
		"over one of such clock": {time.Unix(1700000000, 0), now.Add(2 * time.Hour).Truncate(time.Second)},
	} {
		stamp(t, path, row.store)
		to := t.TempDir() + "/sessions.db"
		r, err := Restore(path, to, row.former)
		testkit.Must(t, err)
		testkit.Equal(t, r, Restored{Subscribers: 1, Left: 1, Recovery: r.Recovery}, "%s", name)
		later := r.Recovery.After(row.store) && r.Recovery.After(row.former) &&
			!r.Recovery.Before(now.Truncate(time.Second))
		p := opened(t, to, store.Boot())
		good := later && p.Recovery().Equal(r.Recovery) && p.Count("") == 1 && len(p.Associations()) == 0
		testkit.ErrorIf(t, !good, "%s: %d sessions, %+v, %v, %v", name, p.Count(""), p.Associations(), r, p.Recovery())
		list := p.SetLines(&heard{})
		testkit.ErrorIf(t, len(list) != 1 || list[0].SEID != 77 || list[0].Session == nil ||
			string(list[0].Data) != `{"a":1}`, "%s: %+v", name, list)
	}
}

// Of a store, or a session, of another version only the recovery time stamp is known.
func TestRestoreOfAnotherVersion(t *testing.T) {
	for name, how := range map[string]func(t *testing.T, path string){
		"store": func(t *testing.T, path string) {
			harm(t, path, func(data []byte) { sealed(data, func(head []byte) { head[7] = '2' }) })
		},
		"session": func(t *testing.T, path string) {
			s, err := store.Open(path, store.Boot(), nil)
			testkit.Must(t, err)
			testkit.Must(t, s.Write([]store.Record{sessionRecord(9, []byte{encoding - 1})}))
			s.Close()
		},
	} {
		path, _ := stored(t)
		recovery := time.Now().Add(time.Hour).Truncate(time.Second)
		stamp(t, path, recovery)
		how(t, path)
		to := path + ".new"
		r, err := Restore(path, to, time.Time{})
		testkit.ErrorIf(t, err != nil || r.Why == nil || !r.Recovery.After(recovery), "%s: %+v, %v", name, r, err)
		testkit.Equal(t, opened(t, to, store.Boot()).Count(""), 0, "%s: sessions", name)
		info, err := os.Stat(to)
		testkit.ErrorIf(t, err != nil || info.Mode().Perm() != 0o600, "%s: %v, %v", name, info, err)
	}
}
