// SPDX-License-Identifier: Apache-2.0

package session

import (
	"os"
	"time"
)

// A journal that is mostly out of date is written anew beside the old one while requests go on: each turn writes some of the
// sessions, and what changes meanwhile is written to both. The new file takes the old one's place when all are in it; a process
// that dies before has the old one.

const (
	newSuffix     = ".new"
	compactFrom   = 8 << 20 // a file that is no longer than this, beside twice what is in it, stays
	compactAtOnce = 128     // sessions in one turn
	rewriteAgain  = 10 * time.Second
)

// rewrite is a new file on its way.
type rewrite struct {
	journal
	at cursor
}

// outdated tells whether the file is worth writing anew; live is what the sessions take in it. A new file never is.
func (j *journal) outdated(live uint64) bool {
	if j.lack {
		return !time.Now().Before(j.retry)
	}
	return uint64(j.size) > max(j.least, j.again)+2*live
}

func (j *journal) begin(generation uint64) error {
	j.retry = time.Now().Add(rewriteAgain)
	f, err := createJournal(j.path+newSuffix, generation)
	if err != nil {
		j.abandon()
		return err
	}
	j.next = &rewrite{journal: *f}
	return nil
}

// abandon gives the new file up; the next one is begun when as much has come again.
func (j *journal) abandon() {
	j.again = uint64(j.size) + j.least
	if j.next != nil {
		j.next.f.Close()
		j.next = nil
	}
	os.Remove(j.path + newSuffix)
}

// advance writes the next sessions; done says that these were the last, and that the new file is the file.
func (j *journal) advance(all *records) (done bool, err error) {
	b := append(j.out[:0], make([]byte, frameHead)...)
	for range compactAtOnce {
		number, data, ok := all.next(&j.next.at)
		if !ok {
			done = true
			break
		}
		b = appendRecord(b, number, data)
	}
	if j.out = b; len(b) > frameHead {
		seal(b)
		if err := j.next.append(b); err != nil {
			j.abandon()
			return false, err
		}
	}
	if !done {
		return false, nil
	}
	if err := os.Rename(j.next.path, j.path); err != nil {
		j.abandon()
		return false, err
	}
	j.f.Close()
	j.f, j.size, j.torn, j.lack, j.again, j.next = j.next.f, j.next.size, false, false, 0, nil
	return true, nil
}
