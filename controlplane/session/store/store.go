// SPDX-License-Identifier: Apache-2.0

// Package store keeps what the session layer needs after a restart: sessions, associations, PFDs, usage that waits for
// its CP function, subscribers. One file takes each transaction as one frame, by one system call, and is compacted
// while requests go on. It is never synced to disk, which would delay every hundredth request by 10 ms. A process that
// dies loses nothing; when the machine dies the sessions are gone (boot.go).
//
//	file:   head (64 bytes), frames
//	head:   magic (8), recovery time stamp (8), boot of the machine (40), CRC-32C of these (4), zeros (4)
//	frame:  length of the records (4), their CRC-32C (4), CRC-32C of these two (4), records
//	record: kind (1), number (8), length (4), data
package store

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// Kind is the type of a record. Load gives them in this order.
type Kind uint8

const (
	Association Kind = iota + 1
	Application
	Session
	Usage
	Line    // of a sign-in, beside the session
	Account // of accounting, until a server has it (Accounts)
	Reading // of what the data plane has measured of a session
)

// inMemory: the writer of this kind has its records in memory, too (Compact).
func (k Kind) inMemory() bool { return k == Session || k == Reading }

// Record is what is kept under a number, which is a kind's own; without data it is a removal.
type Record struct {
	Kind   Kind
	Number uint64
	Data   []byte
}

// Named is the record of what has a name in place of a number.
func Named(kind Kind, name string, data []byte) Record {
	sum := sha256.Sum256([]byte(name))
	return Record{kind, binary.BigEndian.Uint64(sum[:]), data}
}

// NamedData is a name and JSON about it, which is what the records of applications are.
func NamedData(name string, about []byte) []byte {
	b := binary.AppendUvarint(nil, uint64(len(name)))
	return append(append(b, name...), about...)
}

// SplitData is NamedData's inverse.
func SplitData(data []byte) (name string, about []byte, ok bool) {
	length, n := binary.Uvarint(data)
	if n <= 0 || length > uint64(len(data)-n) {
		return "", nil, false
	}
	return string(data[n : n+int(length)]), data[n+int(length):], true
}

// Store is used by one goroutine at a time. Without a path it keeps nothing.
type Store struct {
	journal
	head  head
	moved Moved
}

// Open opens or creates a store. A store of another boot of the machine is emptied; a damaged one, or one of another
// version, is moved aside.
func Open(path, boot string, log *slog.Logger) (*Store, error) {
	if path == "" {
		return &Store{head: head{recovery: newRecovery(time.Time{}), boot: boot}}, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	s := &Store{}
	err := s.open(path, boot, log)
	if damaged(err) {
		err = s.begin(path, boot, err, log)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Begin moves a store aside, whose records cannot be read, and begins another.
func (s *Store) Begin(why error, log *slog.Logger) error {
	path := s.path
	s.Close()
	return s.begin(path, s.head.boot, why, log)
}

func (s *Store) begin(path, boot string, why error, log *slog.Logger) (err error) {
	if s.moved, err = MoveAside(path, why, log); err != nil {
		return err
	}
	return s.open(path, boot, log)
}

// Moved describes a file that Open or Begin moved aside.
func (s *Store) Moved() Moved { return s.moved }

// open may be called again after an error: the next recovery time stamp is later than what could be read of the last.
func (s *Store) open(path, boot string, log *slog.Logger) error {
	f, err := lock(path)
	if err != nil {
		return err
	}
	os.Remove(path + newSuffix) // no other process has it: we ended while it was being written
	s.journal = journal{f: f, path: path, least: compactFrom}
	if err := guarded(func() error { return s.start(boot, log) }); err != nil {
		s.close()
		return err
	}
	return nil
}

// start reads the file, or makes an empty one.
func (s *Store) start(boot string, log *slog.Logger) error {
	info, err := s.f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > 0 {
		if s.head, s.places, s.size, err = scan(s.f, info.Size()); err != nil {
			return err
		}
		if s.head.boot == boot {
			return s.cut(info.Size(), log)
		}
		log.Warn("the machine was booted: sessions are gone, the recovery time stamp is a new one", "store", s.path)
	}
	if err := s.f.Truncate(0); err != nil {
		return err
	}
	s.head, s.places, s.size = head{recovery: newRecovery(s.head.recovery), boot: boot}, places{}, headSize
	_, err = s.f.WriteAt(s.head.bytes(), 0)
	return err
}

// cut removes a frame that was being written, which was not answered.
func (s *Store) cut(size int64, log *slog.Logger) error {
	if size == s.size {
		return nil
	}
	log.Warn("the last frame of a store is not whole and is removed: we ended while it was being written",
		"store", s.path, "bytes", size-s.size)
	return s.f.Truncate(s.size)
}

// Recovery is our Recovery Time Stamp.
func (s *Store) Recovery() time.Time { return s.head.recovery }

// Renew records a loss of sessions: TS 23.527 §4.2, CP functions see another Recovery Time Stamp in the next heartbeat.
func (s *Store) Renew() error {
	s.head.recovery = newRecovery(s.head.recovery)
	if s.f == nil {
		return nil
	}
	s.abandon()
	_, err := s.f.WriteAt(s.head.bytes(), 0)
	return err
}

// newRecovery is a recovery time stamp later than another, whatever the clock: peers may take an earlier one for an old
// message.
func newRecovery(after time.Time) time.Time {
	now := time.Now().Truncate(time.Second)
	if !now.After(after) {
		return after.Add(time.Second)
	}
	return now
}

// Load gives all records, those of a kind by rising numbers. Their data is fn's only until it returns. To be called
// once, first.
func (s *Store) Load(fn func(Record) error) error {
	if s.f == nil {
		return nil
	}
	err := guarded(func() error { return s.places.each(s.f, s.size, fn) })
	s.kept = 0
	for i, at := range s.places {
		if i.kind.inMemory() { // in memory from now on, see Compact
			delete(s.places, i)
		} else {
			s.kept += Overhead + uint64(at.length)
		}
	}
	return err
}

// Read gives what is in a file, which a control plane may be writing at this moment.
func Read(path string, fn func(Record) error) (recovery time.Time, boot string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return recovery, "", err
	}
	defer f.Close()
	var h head
	err = guarded(func() error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		var found places
		var size int64
		if h, found, size, err = scan(f, info.Size()); err != nil {
			return err
		}
		return found.each(f, size, fn)
	})
	return h.recovery, h.boot, err
}

// Write appends the records of one transaction. When it fails the file is as it was; what it lacks is then made good by
// Compact.
func (s *Store) Write(records []Record) error {
	if s.f == nil || len(records) == 0 {
		return nil
	}
	return s.write(records)
}

// Close ends a store.
func (s *Store) Close() {
	if s.f != nil {
		s.close()
		s.f = nil
	}
}
