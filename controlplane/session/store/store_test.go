// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

const boot = "this-boot"

func opened(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path, boot, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	t.Cleanup(s.Close)
	return s
}

// contents reads a store as the next process would.
func contents(path string) (map[id]string, error) {
	found := map[id]string{}
	var last Record
	_, _, err := Read(path, func(r Record) error {
		if r.Kind < last.Kind || r.Kind == last.Kind && r.Number <= last.Number {
			return fmt.Errorf("%d %d after %d %d", r.Kind, r.Number, last.Kind, last.Number)
		}
		last, found[id{r.Kind, r.Number}] = r, string(r.Data)
		return nil
	})
	return found, err
}

func session(number uint64, data string) Record { return Record{Session, number, []byte(data)} }
func gone(number uint64) Record                 { return Record{Session, number, nil} }

// of gives the records of a model that are in memory.
func of(model map[id]string) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for i, data := range model {
			if i.kind.inMemory() && !yield(Record{i.kind, i.number, []byte(data)}) {
				return
			}
		}
	}
}

func live(model map[id]string) (sum uint64) {
	for i, data := range model {
		if i.kind.inMemory() {
			sum += Overhead + uint64(len(data))
		}
	}
	return sum
}

func (m mapModel) take(records []Record) {
	for _, r := range records {
		if delete(m, id{r.Kind, r.Number}); r.Data != nil {
			m[id{r.Kind, r.Number}] = string(r.Data)
		}
	}
}

type mapModel map[id]string

// A process that dies while it writes leaves a part of its last frame; all earlier frames are restored, and nothing
// else.
func TestCutAnywhere(t *testing.T) {
	path := t.TempDir() + "/s"
	s := opened(t, path)
	model := mapModel{}
	states := map[int64]map[id]string{headSize: {}}
	for i := range uint64(12) {
		list := []Record{{Session, i + 1, bytes.Repeat([]byte{byte(i)}, int(i*5))}, {Usage, i % 4, []byte("x")}}
		if i%3 == 2 {
			list = append(list, gone(i))
		}
		testkit.Must(t, s.Write(list))
		model.take(list)
		states[s.size] = maps.Clone(model)
	}
	s.Close()
	whole, err := os.ReadFile(path)
	testkit.Must(t, err)
	last := states[headSize]
	for n := headSize; n <= len(whole); n++ {
		testkit.Must(t, os.WriteFile(path, whole[:n], 0o600))
		if state, frame := states[int64(n)]; frame {
			last = state
		}
		found, err := contents(path)
		testkit.FatalIf(t, err != nil || !maps.Equal(found, last),
			"cut to %d: %v, want %v; %v", n, found, last, err)
	}
	for n := range headSize {
		testkit.Must(t, os.WriteFile(path, whole[:n], 0o600))
		if _, err := contents(path); err == nil {
			t.Fatalf("%d bytes were taken for a store", n)
		}
	}
}

// Any flipped bit is damage, in a length too. The store is moved aside, and CP functions see a later recovery time
// stamp (TS 23.527 §4.2), also when the clock was set back.
func TestDamageIsNoTornEnd(t *testing.T) {
	path := t.TempDir() + "/s"
	s := opened(t, path)
	s.head.recovery = time.Now().Add(1000 * time.Hour).Truncate(time.Second)
	testkit.Must(t, s.Renew())
	before := s.Recovery()
	for i := range uint64(2) {
		testkit.Must(t, s.Write([]Record{session(i, "some data")}))
	}
	s.Close()
	whole, err := os.ReadFile(path)
	testkit.Must(t, err)
	for n := range len(whole) * 8 {
		if n/8 >= headSummed+4 && n/8 < headSize { // these bits are not used
			continue
		}
		harmed := bytes.Clone(whole)
		harmed[n/8] ^= 1 << (n % 8)
		testkit.Must(t, os.WriteFile(path, harmed, 0o600))
		found, err := contents(path)
		testkit.FatalIf(t, err == nil, "bit %d of byte %d: %d of 2 sessions", n%8, n/8, len(found))
		s, err := Open(path, boot, slog.New(slog.DiscardHandler))
		testkit.Must(t, err)
		testkit.FatalIf(t, len(s.places) != 0 || n/8 >= headSize && !s.Recovery().After(before),
			"bit %d of byte %d: %d sessions, stamp %s after %s", n%8, n/8, len(s.places), s.Recovery(),
			before)
		s.Close()
		aside, err := os.ReadFile(path + badSuffix)
		testkit.FatalIf(t, err != nil || !bytes.Equal(aside, harmed), "bit %d of byte %d: not kept, %v", n%8,
			n/8, err)
	}
}

// unwritable makes what is written to a store fail, until it is called.
func unwritable(t *testing.T, s *Store) (end func()) {
	t.Helper()
	good := s.f
	var err error
	s.f, err = os.Open(s.path) // nothing can be written to it, nor cut off
	testkit.Must(t, err)
	return func() {
		s.f.Close()
		s.f = good
	}
}

// A failed write leaves no record, and later writes do.
func TestWriteFails(t *testing.T) {
	path := t.TempDir() + "/s"
	s := opened(t, path)
	testkit.Must(t, s.Write([]Record{session(1, "one")}))
	end := unwritable(t, s)
	testkit.FatalIf(t, s.Write([]Record{session(2, "two")}) == nil || !s.torn, "written")
	end()
	_, err := s.f.WriteAt([]byte("part of a frame"), s.size) // as a full disk leaves it
	testkit.Must(t, err)
	testkit.Must(t, s.Write([]Record{session(3, "x")}))
	if found, err := contents(path); err != nil || !maps.Equal(found,
		map[id]string{{Session, 1}: "one", {Session, 3}: "x"}) {
		t.Errorf("%v %v", found, err)
	}
}

// However records come, change and go while the file is compacted, the files of any moment hold what was answered.
func TestCompaction(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir+"/s")
	s.least = 1
	random := rand.New(rand.NewPCG(3, 4))
	model := mapModel{}
	check := func(step int) {
		data, err := os.ReadFile(dir + "/s")
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(dir+"/copy", data, 0o600))
		found, err := contents(dir + "/copy")
		testkit.FatalIf(t, err != nil || !maps.Equal(found, model),
			"step %d: %d records, want %d; %v", step, len(found), len(model), err)
	}
	compacted := 0
	kinds := []Kind{Association, Application, Session, Usage, Reading}
	for step := range 12000 {
		var list []Record
		for range 1 + random.IntN(4) {
			r := Record{kinds[random.IntN(len(kinds))], random.Uint64N(700), nil}
			if random.IntN(2) == 0 {
				r.Data = bytes.Repeat([]byte{byte(step)}, 1+random.IntN(300))
			}
			list = append(list, r)
		}
		testkit.Must(t, s.Write(list))
		model.take(list)
		before := s.f
		_, err := s.Compact(live(model), of(model))
		testkit.Must(t, err)
		if s.f != before {
			compacted++
		}
		if step%61 == 0 {
			check(step)
		}
	}
	check(-1)
	testkit.ErrorIf(t, compacted < 3, "compacted %d times: a poor test", compacted)
	s.Close()
	again := opened(t, dir+"/s")
	testkit.Must(t, again.Load(func(Record) error { return nil }))
	testkit.ErrorIf(t, again.kept != s.kept || len(again.places) != len(s.places),
		"%d bytes in %d records, want %d in %d", again.kept, len(again.places), s.kept, len(s.places))
}

// A file that was just compacted is not compacted again, after any writes: sessions of a former process, and removals,
// which are short.
func TestCompactionComesToAnEnd(t *testing.T) {
	s := opened(t, t.TempDir()+"/s")
	model := mapModel{}
	for number := uint64(1); number <= 20000; number++ {
		model.take([]Record{session(number, "some hundred bytes are a session, of which this is the beginning, and "+
			"then there is more")})
	}
	for number := uint64(1 << 20); number < 1<<20+1000; number++ {
		testkit.Must(t, s.Write([]Record{gone(number)}))
	}
	testkit.Must(t, s.Write([]Record{{Usage, 1, make([]byte, 1<<20)}}))
	s.least, s.size = 1<<10, int64(3*(live(model)+s.kept)) // as if they had been written
	testkit.Must(t, s.f.Truncate(s.size))
	compacted := 0
	for range 20000/compactAtOnce*4 + 8 {
		before := s.f
		_, err := s.Compact(live(model), of(model))
		testkit.Must(t, err)
		if s.f != before {
			compacted++
		}
	}
	testkit.ErrorIf(t, compacted != 1 || uint64(s.size) < live(model)+s.kept,
		"compacted %d times, %d bytes of %d", compacted, s.size, live(model))
}

// After a full disk the file has the present state again, not the former one: also of sessions that ended meanwhile.
func TestHealedAfterAFullDisk(t *testing.T) {
	path := t.TempDir() + "/s"
	s := opened(t, path)
	model := mapModel{}
	write := func(records ...Record) error {
		model.take(records)
		return s.Write(records)
	}
	testkit.Must(t, write(session(1, "one"), session(2, "two"), Record{Reading, 1, []byte("r")},
		Record{Usage, 1, []byte("u")}, Record{Usage, 2, []byte("v")}, Record{Usage, 3, []byte("w")}))
	end := unwritable(t, s)
	if write(gone(1), session(3, "three"), Record{Reading, 1, []byte("rr")}, Record{Usage, 1, nil},
		Record{Usage, 2, []byte("vv")}, Record{Usage, 3, []byte("ww")},
		Record{Association, 9, []byte("a")}) == nil {
		t.Fatal("written")
	}
	end()
	testkit.Must(t, write(gone(2), Record{Usage, 3, []byte("www")}))
	for s.lack {
		_, err := s.Compact(live(model), of(model))
		testkit.Must(t, err)
	}
	if found, err := contents(path); err != nil || !maps.Equal(found, model) || len(model) != 5 {
		t.Errorf("%v %v, want %v", found, err, model)
	}
}

// While nothing can be written it is not tried with each transaction.
func TestWaitsBeforeItIsHealed(t *testing.T) {
	s := opened(t, t.TempDir()+"/s")
	s.lack = true
	testkit.Must(t, os.Mkdir(s.path+newSuffix, 0o700))
	_, err := s.Compact(0, of(nil))
	testkit.ErrorIf(t, err == nil || s.outdated(0), "tried again at once")
	s.retry = time.Time{}
	testkit.ErrorIf(t, !s.outdated(0), "never tried again")
}

// A process that is killed while it compacts its store loses nothing that was written.
func TestKilledWhileCompacting(t *testing.T) {
	if path := os.Getenv("STORE_TEST_KILLED"); path != "" {
		s := opened(t, path)
		s.least = 1
		model := mapModel{}
		for i := uint64(1); ; i++ {
			list := []Record{session(i, fmt.Sprint("session ", i)), gone(i * 7 % (i + 1)),
				{Usage, i % 50, []byte(fmt.Sprint(i))}}
			testkit.Must(t, s.Write(list))
			model.take(list)
			fmt.Println(i)
			_, err := s.Compact(live(model), of(model))
			testkit.Must(t, err)
		}
	}
	path := t.TempDir() + "/s"
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhileCompacting$")
	cmd.Env = append(os.Environ(), "STORE_TEST_KILLED="+path)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	var last uint64
	for range 3000 {
		_, err := fmt.Fscanln(out, &last)
		testkit.Must(t, err)
	}
	cmd.Process.Kill()
	for told := last; ; last = told { // what it had reported before it died
		if _, err := fmt.Fscanln(out, &told); err != nil {
			break
		}
	}
	cmd.Wait()
	model := mapModel{}
	for i := uint64(1); i <= last; i++ {
		model.take([]Record{session(i, fmt.Sprint("session ", i)), gone(i * 7 % (i + 1)),
			{Usage, i % 50, []byte(fmt.Sprint(i))}})
	}
	found := mapModel{}
	testkit.Must(t, opened(t, path).Load(func(r Record) error { found.take([]Record{r}); return nil }))
	i := last + 1
	next := maps.Clone(model)
	next.take([]Record{session(i, fmt.Sprint("session ", i)), gone(i * 7 % (i + 1)),
		{Usage, i % 50, []byte(fmt.Sprint(i))}})
	if !maps.Equal(found, model) && !maps.Equal(found, next) { // the last may be unreported
		t.Errorf("%d records after %d transactions, want %d", len(found), last, len(model))
	}
}

// Two control planes cannot have one store, not even after it was compacted.
func TestStoreInUse(t *testing.T) {
	path := t.TempDir() + "/s"
	s := opened(t, path)
	for range 2 {
		if other, err := Open(path, boot, slog.New(slog.DiscardHandler)); !errors.Is(err, errInUse) {
			t.Errorf("%v %v", other, err)
		} else {
			testkit.Refused(t, err, fmt.Sprintf("another process uses it, process %d: stop that process", os.Getpid()))
			testkit.Refused(t, err, "control.state or --state")
		}
		s.lack = true
		_, err := s.Compact(0, of(nil))
		testkit.Must(t, err)
	}
	s.Close()
	opened(t, path)
}

// Any file in a store's place is read within its bounds, and its records are in it.
func FuzzStore(f *testing.F) {
	frame := func(records ...Record) []byte {
		b := make([]byte, frameHead)
		for _, r := range records {
			b = appendRecord(b, r)
		}
		seal(b)
		return b
	}
	f.Add(append(make([]byte, 16), frame(session(1, "one"), gone(2))...), true, 16)
	f.Add(append(make([]byte, 16), frame(session(1, "one"), Record{Usage, 1, []byte("two")})...), false, 16)
	f.Fuzz(func(t *testing.T, data []byte, sealed bool, from int) {
		if from < 0 || from > len(data) {
			return
		}
		if sealed && len(data) >= from+frameHead { // so that sums do not keep it from what follows
			seal(data[from:])
		}
		found, end, err := findRecords(data, from)
		if err != nil {
			return
		}
		testkit.FatalIf(t, end < int64(from) || end > int64(len(data)),
			"frames end at %d of %d", end, len(data))
		for i, at := range found {
			testkit.FatalIf(t, at.at < int64(from+frameHead+Overhead) || at.at+int64(at.length) > end,
				"record %v at %d, %d long, of %d", i, at.at, at.length, end)
		}
	})
}

// A second control plane, which is refused, leaves the compaction of the first alone.
func TestStoreInUseWhileCompacting(t *testing.T) {
	path := t.TempDir() + "/store"
	s := opened(t, path)
	model := map[id]string{}
	for n := range uint64(3 * compactAtOnce) {
		model[id{Session, n}] = "data"
	}
	s.lack = true // of a disk that was full
	if more, err := s.Compact(live(model), of(model)); err != nil || !more {
		t.Fatal(more, err)
	}
	if _, err := Open(path, boot, slog.New(slog.DiscardHandler)); !errors.Is(err, errInUse) {
		t.Fatal(err)
	}
	for more := true; more; {
		var err error
		if more, err = s.Compact(live(model), of(model)); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := contents(path); err != nil || !maps.Equal(found, model) {
		t.Errorf("%d of %d sessions, %v", len(found), len(model), err)
	}
}

// The clock may go back: a machine without one of its own boots years ago.
func TestRecoveryNeverGoesBack(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Second, 1000 * time.Hour} {
		before := time.Now().Truncate(time.Second).Add(ahead)
		after := newRecovery(before)
		testkit.ErrorIf(t, !after.After(before), "%s after %s", after, before)
	}
}
