// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// journal is the file of the sessions: what each transaction put and removed, one frame after the other, each written by one
// system call. It stands beside the store, which has the generation that the file is of: a journal of another store is none.
// A frame is whole or it is none: its sum says so, and a process that dies while it writes has answered nobody yet. What is
// out of date is left behind when the file is written anew, bit by bit (compact.go).
//
//	file:  magic, generation (8 bytes each), frames
//	frame: length (4), CRC-32C of what follows (4), then for each session its number (8), length (4), encoding
type journal struct {
	f    *os.File
	path string
	size int64
	torn bool // bytes of a frame that failed lie behind size
	lack bool // a frame failed: what it said is in memory alone, until the file is written anew
	out  []byte
	next *rewrite

	least, again uint64    // see outdated
	retry        time.Time // the same, when lack is set
}

const (
	journalMagic  = "isthmus1"
	journalHead   = 16
	frameHead     = 8
	recordPrefix  = 12
	removed       = 0xffffffff // in place of a length
	mostFrame     = 1 << 30
	journalSuffix = ".log"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// createJournal begins a file. What was there is gone.
func createJournal(path string, generation uint64) (*journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	head := binary.LittleEndian.AppendUint64([]byte(journalMagic), generation)
	if _, err := f.WriteAt(head, 0); err != nil {
		f.Close()
		return nil, err
	}
	return &journal{f: f, path: path, size: journalHead, least: compactFrom}, nil
}

// openJournal reads what is there: fn is told of each session that is not removed, the oldest first.
func openJournal(path string, generation uint64, fn func(number uint64, data []byte) error) (*journal, error) {
	os.Remove(path + newSuffix) // we ended while it was being written
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is not there", errEncoding, path)
	}
	if err != nil {
		return nil, err
	}
	j := &journal{f: f, path: path, least: compactFrom}
	if err = j.load(generation, fn); err == nil {
		err = f.Truncate(j.size)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

func (j *journal) load(generation uint64, fn func(number uint64, data []byte) error) error {
	info, err := j.f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < journalHead {
		return errEncoding
	}
	all, err := unix.Mmap(int(j.f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(all)
	if string(all[:8]) != journalMagic || binary.LittleEndian.Uint64(all[8:]) != generation {
		return errEncoding
	}
	where, end, err := findRecords(all)
	if err != nil {
		return err
	}
	j.size = int64(end)
	numbers := make([]uint64, 0, len(where))
	for number := range where {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	for _, number := range numbers {
		at := where[number]
		n := binary.LittleEndian.Uint32(all[at-4:])
		if err := fn(number, all[at:at+uint64(n):at+uint64(n)]); err != nil {
			return err
		}
	}
	return nil
}

// findRecords returns where the last encoding of each session begins, and where the frames end.
func findRecords(all []byte) (where map[uint64]uint64, end int, err error) {
	where, end = map[uint64]uint64{}, journalHead
	for len(all)-end >= frameHead {
		n := int(binary.LittleEndian.Uint32(all[end:]))
		if n > len(all)-end-frameHead {
			break // it was being written
		}
		b := all[end+frameHead : end+frameHead+n]
		if crc32.Checksum(b, castagnoli) != binary.LittleEndian.Uint32(all[end+4:]) {
			return nil, 0, fmt.Errorf("%w: a frame's sum is wrong", errEncoding)
		}
		at := uint64(end + frameHead)
		for len(b) > 0 {
			if len(b) < recordPrefix {
				return nil, 0, errEncoding
			}
			number, length := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:])
			b, at = b[recordPrefix:], at+recordPrefix
			if length == removed {
				delete(where, number)
				continue
			}
			if uint64(length) > uint64(len(b)) {
				return nil, 0, errEncoding
			}
			where[number] = at
			b, at = b[length:], at+uint64(length)
		}
		end += frameHead + n
	}
	return where, end, nil
}

func appendRecord(b []byte, number uint64, data []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, number)
	if data == nil {
		return binary.LittleEndian.AppendUint32(b, removed)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	return append(b, data...)
}

// seal finishes a frame that began with frameHead bytes of room.
func seal(b []byte) {
	binary.LittleEndian.PutUint32(b, uint32(len(b)-frameHead))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[frameHead:], castagnoli))
}

// write adds one frame. A failure leaves the file as it was, and has it written anew from memory, as soon as that can be: else
// sessions that ended meanwhile would come back with a restart, and be in the way of those that took their addresses.
func (j *journal) write(records []record) error {
	err := j.add(records)
	if err != nil {
		j.lack = true
		if j.next != nil {
			j.abandon()
		}
	}
	return err
}

func (j *journal) add(records []record) error {
	b := append(j.out[:0], make([]byte, frameHead)...)
	for _, r := range records {
		b = appendRecord(b, r.number, r.data)
	}
	if len(b) > mostFrame {
		return fmt.Errorf("a transaction of %d bytes", len(b))
	}
	seal(b)
	if j.out = b; cap(b) > 1<<20 {
		j.out = nil
	}
	if err := j.append(b); err != nil {
		return err
	}
	if j.next != nil {
		if err := j.next.append(b); err != nil {
			j.abandon()
		}
	}
	return nil
}

// append writes a whole frame behind the others. Part of one, when the disk is full, is taken back: what comes after it could not
// be read.
func (j *journal) append(b []byte) error {
	if j.torn {
		if err := j.f.Truncate(j.size); err != nil {
			return err
		}
		j.torn = false
	}
	n, err := j.f.WriteAt(b, j.size)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		j.torn = j.f.Truncate(j.size) != nil
		return err
	}
	j.size += int64(len(b))
	return nil
}

func (j *journal) close() {
	if j != nil {
		j.abandon()
		j.f.Close()
	}
}
