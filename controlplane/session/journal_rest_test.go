// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/pfcp"
)

// A file that was just written anew is not written again, whatever was written before: sessions of a former process, and
// removals, which are short.
func TestJournalComesToRest(t *testing.T) {
	j, err := createJournal(t.TempDir()+"/j", 7)
	must(t, err)
	s := &store{log: j, generation: 7}
	all := &records{}
	data := make([]byte, 400)
	for number := uint64(1); number <= 40000; number++ {
		all.add(number, 1, data)
	}
	for number := uint64(1 << 20); number < 1<<20+1000; number++ {
		must(t, j.write([]record{{number, nil}}))
	}
	j.least, j.size = 1<<10, 40000*(400+recordPrefix)*3
	rewritten := 0
	for range 40000/compactAtOnce*4 + 8 {
		before := j.f
		_, err := s.tidy(all)
		must(t, err)
		if j.f != before {
			rewritten++
		}
	}
	if rewritten != 1 || uint64(j.size) < all.bytes {
		t.Errorf("written anew %d times, %d bytes of %d", rewritten, j.size, all.bytes)
	}
	j.close()
}

// The bytes of all records are those of the records that are there.
func TestRecordsCountBytes(t *testing.T) {
	all := &records{}
	var list []handle
	for n := range 3000 {
		list = append(list, all.add(uint64(n+1), 1, make([]byte, n)))
	}
	for _, h := range list[100:] {
		all.drop(h)
	}
	if want := uint64(100*recordPrefix + 99*100/2); all.bytes != want {
		t.Errorf("%d, want %d", all.bytes, want)
	}
}

// After a full disk the file says again what is so, and not what was so before: also of what ended meanwhile.
func TestJournalIsHealedAfterAFullDisk(t *testing.T) {
	path := t.TempDir() + "/j"
	j, err := createJournal(path, 7)
	must(t, err)
	s := &store{log: j, generation: 7}
	all := &records{}
	one, two := all.add(1, 1, []byte("one")), all.add(2, 1, []byte("two"))
	must(t, j.write([]record{{1, []byte("one")}, {2, []byte("two")}}))
	good := j.f
	if j.f, err = os.Open(path); err != nil { // nothing can be written to it
		t.Fatal(err)
	}
	all.drop(one)
	all.add(3, 1, []byte("three"))
	if j.write([]record{{1, nil}, {3, []byte("three")}}) == nil {
		t.Fatal("written")
	}
	j.f.Close()
	j.f = good
	all.drop(two)
	must(t, j.write([]record{{2, nil}}))
	for j.lack {
		_, err := s.tidy(all)
		must(t, err)
	}
	j.close()
	if found, err := contents(path, 7); err != nil || !maps.Equal(found, map[uint64]string{3: "three"}) {
		t.Errorf("%v %v", found, err)
	}
}

// While nothing can be written it is not tried with each transaction.
func TestJournalWaitsBeforeItIsHealed(t *testing.T) {
	j, err := createJournal(t.TempDir()+"/j", 7)
	must(t, err)
	j.lack = true
	must(t, os.Mkdir(j.path+newSuffix, 0o700))
	if j.begin(7) == nil || j.outdated(0) {
		t.Error("tried again at once")
	}
	j.retry = time.Time{}
	if !j.outdated(0) {
		t.Error("never tried again")
	}
	j.close()
}

// The whole of it: a deletion that could not be written does not bring its session back, in the place of who has its address.
func TestWhoEndedWhileTheDiskWasFullStaysAway(t *testing.T) {
	path := t.TempDir() + "/sessions.db"
	p, err := open(path, bootID(), testSettings(), slog.New(slog.DiscardHandler))
	must(t, err)
	p.client = accepting{}
	b := &bench{Plane: p, t: t}
	was := b.atOnce(request(1, "10.45.0.5"), 0)
	good := p.store.log.f
	if p.store.log.f, err = os.Open(path + journalSuffix); err != nil {
		t.Fatal(err)
	}
	p.store.log.retry = time.Now().Add(time.Hour)
	b.atOnce(&pfcp.SessionDeletionRequest{}, was)
	p.store.log.f.Close()
	p.store.log.f = good
	is := b.atOnce(request(2, "10.45.0.5"), 0)
	for p.store.log.retry = (time.Time{}); p.store.log.lack; {
		p.turn(nil)
	}
	p.Close()
	if p, err = open(path, bootID(), testSettings(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Session(was) != nil || p.Session(is) == nil {
		t.Error("the session that ended is there, and not the one that lives")
	}
}

// accepting is a data plane that takes everything.
type accepting struct{}

func (accepting) Commit(context.Context, []dp.Change) ([]api.Usage, error) { return nil, nil }
