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

// Accounts are records of accounting until a server has them. A boot of the machine ends sessions, not bills (RFC 2866
// §2): they have a file of their own, which no boot empties. It may be used by any goroutine.
type Accounts struct {
	log *slog.Logger

	mu     sync.Mutex
	store  *Store
	had    []Record // when it was opened
	failed uint64   // times that a record was not written
}

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
	a := &Accounts{log: log, store: s}
	if err = s.Load(a.take); err != nil {
		s.Close()
		return nil, err
	}
	if s.aside != "" {
		err := salvage(s.aside, a.take)
		log.Warn("records of accounting before the damage are kept", "file", s.aside, "records", len(a.had),
			"error", err)
		for _, r := range a.had {
			a.write(r)
		}
	}
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
func (a *Accounts) Keep(number uint64, data []byte) { a.write(Record{Account, number, data}) }

// Forget removes it.
func (a *Accounts) Forget(number uint64) { a.write(Record{Account, number, nil}) }

// write appends to the file, and goes on with compacting it.
func (a *Accounts) write(r Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.store.Write([]Record{r}); err != nil {
		if a.failed++; a.failed == 1 || a.failed%1000 == 0 {
			a.log.Error("a record of accounting is not kept for a restart", "error", err, "times", a.failed)
		}
	}
	if _, err := a.store.Compact(0, func(func(Record) bool) {}); err != nil {
		a.log.Error("the file of accounting is not compacted", "error", err)
	}
}

// Close ends it.
func (a *Accounts) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store.Close()
}

// MoveAccounts writes records that a former version kept among sessions into the file beside their store.
func MoveAccounts(path string, records []Record, log *slog.Logger) error {
	a, err := OpenAccounts(AccountsPath(path), log)
	if err != nil {
		return err
	}
	defer a.Close()
	return a.store.Write(records)
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
