// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
)

// Accounts are accounting records until a server has them. A boot of the machine ends sessions, not bills (RFC 2866
// §2): their file survives it. Any goroutine may use it.
type Accounts struct {
	Moved      Moved // aside, when it was opened
	log        *slog.Logger
	had        []Record    // when it was opened
	in         chan Record // a slow disk holds up callers with more than this
	stop, done chan struct{}
	once       sync.Once

	store  *Store // the writer's, while it runs
	failed uint64 // times that records were not written
}

const (
	accountsWait = 4096
	accountsMost = compactAtOnce / 2 // records of one frame: compacting is faster
)

// AccountsPath is the file of accounting beside a store.
func AccountsPath(path string) string {
	if path == "" {
		return ""
	}
	return strings.TrimSuffix(path, ".db") + ".accounting.db"
}

// OpenAccounts opens the file, or begins one. Of a damaged one, which is moved aside, it has what lies before the
// damage.
func OpenAccounts(path string, log *slog.Logger) (*Accounts, error) {
	s, err := Open(path, "", log) // of no boot
	if err != nil {
		return nil, err
	}
	a := &Accounts{log: log, store: s, in: make(chan Record, accountsWait), stop: make(chan struct{}),
		done: make(chan struct{})}
	if err = s.Load(a.take); err != nil {
		s.Close()
		return nil, err
	}
	if a.Moved = s.moved; a.Moved.Why != nil {
		err := salvage(a.Moved.To, a.take)
		log.Warn("records of accounting before the damage are kept", "file", a.Moved.To, "records", len(a.had),
			"error", err)
		a.write(a.had)
	}
	go a.run()
	return a, nil
}

func (a *Accounts) take(r Record) error {
	if r.Kind == Account {
		a.had = append(a.had, Record{r.Kind, r.Number, slices.Clone(r.Data)})
	}
	return nil
}

// Records are those that the file had, by rising numbers; to be called once.
func (a *Accounts) Records() []Record {
	list := a.had
	a.had = nil
	slices.SortFunc(list, func(a, b Record) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// Keep writes a record, which is not changed afterwards.
func (a *Accounts) Keep(number uint64, data []byte) { a.bring(Record{Account, number, data}) }

// Forget removes it.
func (a *Accounts) Forget(number uint64) { a.bring(Record{Account, number, nil}) }

// bring gives a record to the writer. After Close nothing is written any more.
func (a *Accounts) bring(r Record) {
	select {
	case a.in <- r:
	case <-a.done:
	}
}

// run writes what is brought until Close, several records at a time.
func (a *Accounts) run() {
	defer close(a.done)
	defer a.store.Close()
	for {
		select {
		case r := <-a.in:
			a.write(a.more([]Record{r}))
		case <-a.stop:
			for last := a.more(nil); len(last) > 0; last = a.more(nil) {
				a.write(last)
			}
			return
		}
	}
}

// more adds what was brought meanwhile.
func (a *Accounts) more(list []Record) []Record {
	for len(list) < accountsMost {
		select {
		case r := <-a.in:
			list = append(list, r)
		default:
			return list
		}
	}
	return list
}

// write appends to the file, and continues compacting it.
func (a *Accounts) write(list []Record) {
	if err := a.store.Write(list); err != nil {
		if a.failed++; a.failed == 1 || a.failed%1000 == 0 {
			a.log.Error("records of accounting are not kept for a restart", "error", err, "times", a.failed)
		}
	}
	if _, err := a.store.Compact(0, func(func(Record) bool) {}); err != nil {
		a.log.Error("the file of accounting is not compacted", "error", err)
	}
}

// Close ends it when all is written that was brought.
func (a *Accounts) Close() {
	a.once.Do(func() { close(a.stop) })
	<-a.done
}

// salvage gives the records of a damaged file that lie before the damage.
func salvage(path string, fn func(Record) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return guarded(func() error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		_, found, _, damage := scan(f, info.Size())
		if len(found) == 0 {
			return damage
		}
		return found.each(f, info.Size(), fn)
	})
}
