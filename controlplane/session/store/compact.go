// SPDX-License-Identifier: Apache-2.0

package store

import (
	"iter"
	"os"
	"time"
)

// An outdated file is rewritten beside the old one while requests go on. Each turn writes some records; changes go to
// both files. The complete new file replaces the old one. A process that dies before has the old one.

const (
	newSuffix     = ".new"
	compactFrom   = 8 << 20 // a file that is no longer than this, beside twice what is in it, stays
	compactAtOnce = 128     // records in one turn
	compactAgain  = 10 * time.Second
)

// compaction is a new file on its way.
type compaction struct {
	journal
	rest func() (Record, bool)
	end  func()
	err  error // of reading the file
}

// Compact bounds the file, one part a call. live is the file space of the records in memory, which all iterates over
// and which may change meanwhile. more: call again.
func (s *Store) Compact(live uint64, all iter.Seq[Record]) (more bool, err error) {
	j := &s.journal
	if j.f == nil {
		return false, nil
	}
	if j.next == nil {
		if !j.outdated(live) {
			return false, nil
		}
		if err := j.rewrite(s.head, all); err != nil {
			return false, err
		}
	}
	done, err := j.advance()
	return !done && err == nil, err
}

// outdated: the file is worth compacting. A new file never is.
func (j *journal) outdated(live uint64) bool {
	if j.lack {
		return !time.Now().Before(j.retry)
	}
	return uint64(j.size) > max(j.least, j.again)+2*(live+j.kept)
}

func (j *journal) rewrite(h head, inMemory iter.Seq[Record]) error {
	j.retry = time.Now().Add(compactAgain)
	f, err := create(j.path+newSuffix, h)
	if err != nil {
		j.abandon()
		return err
	}
	j.next = &compaction{journal: journal{f: f, path: f.Name(), size: headSize, places: places{}}}
	j.next.rest, j.next.end = iter.Pull(func(yield func(Record) bool) {
		for r := range j.others() {
			if !yield(r) {
				return
			}
		}
		inMemory(yield)
	})
	return nil
}

// create makes an empty file, which is locked before it appears in the store's place.
func create(path string, h head) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err = flock(f); err == nil {
		_, err = f.WriteAt(h.bytes(), 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// others are the records that are not in memory, as they are when their turn comes.
func (j *journal) others() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for i := range j.places {
			data, err := j.current(i)
			if err != nil {
				j.next.err = err
				return
			}
			if data != nil && !yield(Record{i.kind, i.number, data}) {
				return
			}
		}
		for i, data := range j.unwritten {
			if _, placed := j.places[i]; !placed && data != nil && !yield(Record{i.kind, i.number, data}) {
				return
			}
		}
	}
}

// current is the data of a record, nil when it is removed.
func (j *journal) current(i id) ([]byte, error) {
	if data, there := j.unwritten[i]; there {
		return data, nil
	}
	at := j.places[i]
	data := make([]byte, at.length)
	_, err := j.f.ReadAt(data, at.at)
	return data, err
}

// abandon gives the new file up; the next one is begun when as much has come again.
func (j *journal) abandon() {
	j.again = uint64(j.size) + j.least
	if j.next != nil {
		j.next.end()
		j.next.f.Close()
		j.next = nil
		os.Remove(j.path + newSuffix)
	}
}

// advance writes the next records; done: these were the last, and the new file is the file.
func (j *journal) advance() (done bool, err error) {
	var records []Record
	b := append(j.out[:0], make([]byte, frameHead)...)
	for len(records) < compactAtOnce && !done {
		r, more := j.next.rest()
		if done = !more; more {
			b, records = appendRecord(b, r), append(records, r)
		}
	}
	if j.out = b; len(records) > 0 {
		seal(b)
		if err = j.next.append(b); err == nil {
			j.next.placed(records)
		}
	}
	if err == nil {
		err = j.next.err
	}
	if err != nil {
		j.abandon()
		return false, err
	}
	if !done {
		return false, nil
	}
	if err := os.Rename(j.next.path, j.path); err != nil {
		j.abandon()
		return false, err
	}
	j.f.Close()
	j.f, j.size, j.places, j.kept = j.next.f, j.next.size, j.next.places, j.next.kept
	j.torn, j.lack, j.again, j.unwritten, j.next = false, false, 0, nil, nil
	return true, nil
}
