// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"go.etcd.io/bbolt"

	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
)

func generationOf(t *testing.T, path string) (generation uint64) {
	t.Helper()
	edit(t, path, func(tx *bbolt.Tx) error {
		generation = binary.BigEndian.Uint64(tx.Bucket(bucketMeta).Get(keyJournal))
		return nil
	})
	return generation
}

// contents reads a journal as the next process would.
func contents(path string, generation uint64) (map[uint64]string, error) {
	found := map[uint64]string{}
	last := uint64(0)
	j, err := openJournal(path, generation, func(number uint64, data []byte) error {
		if number <= last {
			return fmt.Errorf("%d after %d", number, last)
		}
		last, found[number] = number, string(data)
		return nil
	})
	if err == nil {
		j.close()
	}
	return found, err
}

// A store that was written before there was a journal: its sessions go on.
func TestStoreOfVersion1(t *testing.T) {
	path, recovery := stored(t)
	sessions, err := contents(path+journalSuffix, generationOf(t, path))
	must(t, err)
	must(t, os.Remove(path+journalSuffix))
	edit(t, path, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket(bucketSessions)
		must(t, err)
		for number, data := range sessions {
			must(t, b.Put(binary.BigEndian.AppendUint64(nil, number), []byte(data)))
		}
		must(t, tx.Bucket(bucketMeta).Delete(keyJournal))
		return tx.Bucket(bucketMeta).Put(keyVersion, []byte{treeOfSession})
	})
	for _, name := range []string{"first", "again"} {
		t.Run(name, func(t *testing.T) {
			p := opened(t, path, bootID())
			if p.Count("") != 2 || !p.Recovery().Equal(recovery) {
				t.Errorf("%d sessions, %v", p.Count(""), p.Recovery())
			}
			p.Close()
			edit(t, path, func(tx *bbolt.Tx) error {
				if tx.Bucket(bucketSessions) != nil || tx.Bucket(bucketMeta).Get(keyVersion)[0] != storeVersion {
					t.Error("the sessions are still in the tree")
				}
				return nil
			})
		})
	}
}

// A store without its journal has lost its sessions, and a journal without its store is nobody's.
func TestJournalApartFromItsStore(t *testing.T) {
	t.Run("lost", func(t *testing.T) {
		path, recovery := stored(t)
		must(t, os.Remove(path+journalSuffix))
		if p := opened(t, path, bootID()); p.Count("") != 0 || p.Recovery().Equal(recovery) {
			t.Errorf("%d sessions, %v", p.Count(""), p.Recovery())
		}
	})
	t.Run("another's", func(t *testing.T) {
		path, recovery := stored(t)
		other, _ := stored(t)
		must(t, os.Rename(other+journalSuffix, path+journalSuffix))
		if p := opened(t, path, bootID()); p.Count("") != 0 || p.Recovery().Equal(recovery) {
			t.Errorf("%d sessions, %v", p.Count(""), p.Recovery())
		}
	})
	t.Run("left over", func(t *testing.T) {
		path, _ := stored(t)
		must(t, os.Remove(path))
		if p := opened(t, path, bootID()); p.Count("") != 0 {
			t.Errorf("%d sessions", p.Count(""))
		}
	})
}

// A process that dies while it writes leaves a part of its last frame: what was written before is there, and nothing else.
func TestJournalCutAnywhere(t *testing.T) {
	path := t.TempDir() + "/j"
	j, err := createJournal(path, 7)
	must(t, err)
	states := map[int64]map[uint64]string{journalHead: {}}
	model := map[uint64]string{}
	for i := range uint64(12) {
		list := []record{{i + 1, bytes.Repeat([]byte{byte(i)}, int(i*5))}, {i + 100, []byte("x")}}
		if i%3 == 2 {
			list = append(list, record{i, nil})
			delete(model, i)
		}
		model[i+1], model[i+100] = string(list[0].data), "x"
		must(t, j.write(list))
		states[j.size] = maps.Clone(model)
	}
	j.close()
	whole, err := os.ReadFile(path)
	must(t, err)
	last := states[journalHead]
	for n := journalHead; n <= len(whole); n++ {
		must(t, os.WriteFile(path, whole[:n], 0o600))
		if state, frame := states[int64(n)]; frame {
			last = state
		}
		found, err := contents(path, 7)
		if err != nil || !maps.Equal(found, last) {
			t.Fatalf("cut to %d: %v, want %v; %v", n, found, last, err)
		}
	}
	for n := range journalHead {
		must(t, os.WriteFile(path, whole[:n], 0o600))
		if _, err := contents(path, 7); err == nil {
			t.Fatalf("%d bytes were taken for a journal", n)
		}
	}
	// A byte that is another one: refused, or nothing of its frame and of what follows is taken.
	for n := range whole {
		harmed := bytes.Clone(whole)
		harmed[n] ^= 0x10
		must(t, os.WriteFile(path, harmed, 0o600))
		found, err := contents(path, 7)
		if err != nil {
			continue
		}
		known := false
		for _, state := range states {
			known = known || maps.Equal(found, state)
		}
		if !known {
			t.Fatalf("byte %d: %v", n, found)
		}
	}
}

// What cannot be written is not there, and what is written afterwards is.
func TestJournalWriteFails(t *testing.T) {
	path := t.TempDir() + "/j"
	j, err := createJournal(path, 7)
	must(t, err)
	must(t, j.write([]record{{1, []byte("one")}}))
	good := j.f
	if j.f, err = os.Open(path); err != nil { // nothing can be written to it, nor cut off
		t.Fatal(err)
	}
	if j.write([]record{{2, []byte("two")}}) == nil || !j.torn {
		t.Fatal("written")
	}
	j.f.Close()
	j.f = good
	must(t, os.WriteFile(path+".part", []byte("part of a frame"), 0o600)) // as a full disk leaves it
	_, err = j.f.WriteAt([]byte("part of a frame"), j.size)
	must(t, err)
	must(t, j.write([]record{{3, []byte("x")}}))
	j.close()
	if found, err := contents(path, 7); err != nil || !maps.Equal(found, map[uint64]string{1: "one", 3: "x"}) {
		t.Errorf("%v %v", found, err)
	}
}

// However sessions come, change and go while the file is written anew, the files of any moment hold what was answered.
func TestJournalWrittenAnew(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/j"
	j, err := createJournal(path, 7)
	must(t, err)
	j.least = 1
	s := &store{log: j, generation: 7}
	all := &records{}
	random := rand.New(rand.NewPCG(3, 4))
	type held struct {
		at   handle
		data string
	}
	model := map[uint64]held{}
	var numbers []uint64
	check := func(step int) {
		for _, name := range []string{"j", "j" + newSuffix} {
			if data, err := os.ReadFile(dir + "/" + name); err == nil {
				must(t, os.WriteFile(dir+"/copy"+name[1:], data, 0o600))
			}
		}
		found, err := contents(dir+"/copy", 7)
		must(t, err)
		if len(found) != len(model) {
			t.Fatalf("step %d: %d sessions, want %d", step, len(found), len(model))
		}
		for number, h := range model {
			if found[number] != h.data {
				t.Fatalf("step %d: session %d is %q, want %q", step, number, found[number], h.data)
			}
		}
	}
	rewritten := 0
	for step := range 12000 {
		var list []record
		var free []handle
		for range 1 + random.IntN(4) {
			number := s.number()
			if len(numbers) > 0 && random.IntN(2+len(numbers)/700) > 0 {
				i := random.IntN(len(numbers))
				number = numbers[i]
				free = append(free, model[number].at)
				if random.IntN(2) == 0 {
					list = append(list, record{number, nil})
					delete(model, number)
					numbers = append(numbers[:i], numbers[i+1:]...)
					continue
				}
			} else {
				numbers = append(numbers, number)
			}
			data := bytes.Repeat([]byte{byte(step)}, 1+random.IntN(300))
			if random.IntN(50) == 0 {
				data = bytes.Repeat(data, 40) // longer than any slot
			}
			h := all.add(number, 1, data)
			_, _, mine := all.open(h)
			list = append(list, record{number, mine})
			model[number] = held{h, string(data)}
		}
		must(t, j.write(list))
		for _, h := range free {
			all.drop(h)
		}
		before := j.f
		if _, err := s.tidy(all); err != nil {
			t.Fatal(err)
		}
		if j.f != before {
			rewritten++
		}
		if step%61 == 0 {
			check(step)
		}
	}
	check(-1)
	if rewritten < 3 {
		t.Errorf("written anew %d times: a poor test", rewritten)
	}
	j.close()
}

// A process that is killed while it writes the journal anew loses nothing that was answered.
func TestKilledWhileRewriting(t *testing.T) {
	if path := os.Getenv("SESSION_TEST_REWRITE"); path != "" {
		b := start(t, path, testSettings())
		b.mu.Lock()
		b.store.log.least = 1
		b.mu.Unlock()
		b.KeepAssociation(n4.StoredAssociation{ID: "smf1"})
		var seids []uint64
		for i := uint32(1); ; i++ {
			r := b.establish(smf1, request(i, netip.AddrFrom4([4]byte{10, 50, byte(i >> 8), byte(i)}).String()))
			fmt.Printf("made %x\n", r.UP.SEID)
			if seids = append(seids, r.UP.SEID); i%3 != 0 {
				n := int(i) * 7 % len(seids)
				fmt.Printf("gone %x\n", seids[n]) // before it is: what is answered no more may be there or not
				b.delete(smf1, seids[n])
				seids = append(seids[:n], seids[n+1:]...)
			}
		}
	}
	path := t.TempDir() + "/sessions.db"
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhileRewriting$")
	cmd.Env = append(os.Environ(), "SESSION_TEST_REWRITE="+path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	live := map[uint64]bool{}
	for range 1500 {
		var word string
		var seid uint64
		if _, err := fmt.Fscanf(out, "%s %x\n", &word, &seid); err != nil {
			t.Fatal(err)
		}
		live[seid] = word == "made"
	}
	cmd.Process.Kill()
	for { // what it had told before it died
		var word string
		var seid uint64
		if _, err := fmt.Fscanf(out, "%s %x\n", &word, &seid); err != nil {
			break
		}
		live[seid] = word == "made"
	}
	cmd.Wait()
	b := start(t, path, testSettings())
	for seid, is := range live {
		if is && b.Session(seid) == nil {
			t.Fatalf("session %#x is lost", seid)
		}
	}
	gone := 0
	for seid, is := range live {
		if !is && b.Session(seid) != nil {
			gone++ // the last deletion may not have been carried out
		}
	}
	if gone > 1 {
		t.Errorf("%d deleted sessions are back", gone)
	}
	b.checkConsistent()
}

// Records are what was put into them, whatever was freed and used again.
func TestRecords(t *testing.T) {
	r := &records{}
	random := rand.New(rand.NewPCG(5, 6))
	type held struct {
		number uint64
		owner  uint32
		data   []byte
	}
	model := map[handle]held{}
	for step := range 50000 {
		if len(model) > 0 && random.IntN(100) < 48 {
			for h := range model {
				delete(model, h)
				r.drop(h)
				break
			}
			continue
		}
		want := held{uint64(step + 1), random.Uint32(), bytes.Repeat([]byte{byte(step)}, random.IntN(1300))}
		h := r.add(want.number, want.owner, want.data)
		if _, twice := model[h]; twice || h == 0 {
			t.Fatalf("handle %#x is another's", h)
		}
		model[h] = want
		if step%1000 == 0 {
			count := 0
			for at := (cursor{}); ; count++ {
				if _, _, ok := r.next(&at); !ok {
					break
				}
			}
			if count != len(model) {
				t.Fatalf("%d records are passed, %d are there", count, len(model))
			}
			for h, want := range model {
				if number, owner, data := r.open(h); number != want.number || owner != want.owner || !bytes.Equal(data, want.data) {
					t.Fatalf("%#x: %d %d %x", h, number, owner, data)
				}
			}
		}
	}
	for h := range model {
		r.drop(h)
	}
	for class := range r.classes {
		if len(r.classes[class].pages) > 1 || len(r.long) > 0 {
			t.Errorf("class %d keeps %d pages", class, len(r.classes[class].pages))
		}
	}
}

// What the data plane refuses leaves no record behind: neither of a session that was to be, nor of what one was to become.
func TestRefusedLeavesNoRecord(t *testing.T) {
	p, err := Open("", testSettings(), nil)
	must(t, err)
	defer p.Close()
	d := &strict{t: t, held: heldNothing()}
	p.Attach(d)
	b := &bench{Plane: p, t: t}
	seid := b.atOnce(request(1, "10.46.0.1"), 0)
	was := b.data(seid)
	for i, m := range []pfcp.Message{request(2, "10.46.0.2"), &pfcp.SessionDeletionRequest{}, &pfcp.SessionModificationRequest{
		UpdatePDR: []pfcp.UpdatePDR{{ID: 1, Precedence: ptr(uint32(7))}}}} {
		d.refuse = true
		b.atOnce(m, seid)
		number := 0
		for at := (cursor{}); ; number++ {
			if _, _, ok := p.x.records.next(&at); !ok {
				break
			}
		}
		if number != 1 || b.data(seid) != was || d.refuse {
			t.Errorf("request %d: %d records of one session", i, number)
		}
	}
}

// Whatever is in a journal's place: it is read within its bounds, and a session that comes out of it is in it.
func FuzzJournal(f *testing.F) {
	frame := func(records ...record) []byte {
		b := make([]byte, frameHead)
		for _, r := range records {
			b = appendRecord(b, r.number, r.data)
		}
		seal(b)
		return b
	}
	head := append([]byte(journalMagic), make([]byte, 8)...)
	f.Add(append(bytes.Clone(head), frame(record{1, []byte("one")}, record{2, nil})...), true)
	f.Add(append(bytes.Clone(head), frame(record{1, []byte("one")}, record{1, []byte("two")})...), false)
	f.Add(append(bytes.Clone(head), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0), false)
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if len(data) < journalHead {
			return
		}
		if sealed && len(data) >= journalHead+frameHead { // so that sums do not keep it from what lies behind them
			seal(data[journalHead:])
		}
		where, end, err := findRecords(data)
		if err != nil {
			return
		}
		if end < journalHead || end > len(data) {
			t.Fatalf("frames end at %d of %d", end, len(data))
		}
		for number, at := range where {
			n := binary.LittleEndian.Uint32(data[at-4:])
			if binary.LittleEndian.Uint64(data[at-recordPrefix:]) != number || at+uint64(n) > uint64(end) {
				t.Fatalf("session %d at %d, %d long, of %d", number, at, n, end)
			}
		}
	})
}
