// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// The former format: a bbolt database with all but the sessions, and their journal beside it, which is of the
// generation that the database names. It is read once, and rewritten as one file in the database's place.

const (
	formerVersion = 2
	formerJournal = ".log"
	formerMagic   = "isthmus1"
	formerHead    = 16 // magic, generation
	formerPrefix  = 12 // number, length
)

// isFormer tells whether there is a file that has not our magic: it is the former's, or damaged.
func isFormer(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	var b [len(magic)]byte
	n, err := io.ReadFull(f, b[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, err
	}
	return n > 0 && string(b[:]) != magic, nil
}

func convert(path, boot string, log *slog.Logger) error {
	var h head
	var records []Record
	err := guarded(func() (err error) {
		h, records, err = readFormer(path, boot)
		return err
	})
	if err != nil {
		return err
	}
	if h.boot != boot {
		log.Warn("the machine was booted: sessions are gone, the recovery time stamp is a new one", "store", path)
		h = head{newRecovery(h.recovery), boot}
	}
	f, err := create(path+newSuffix, h)
	if err != nil {
		return err
	}
	j := journal{f: f, path: path + newSuffix, size: headSize, places: places{}}
	for len(records) > 0 && err == nil {
		n := min(len(records), compactAtOnce)
		err, records = j.write(records[:n]), records[n:]
	}
	if err == nil {
		err = os.Rename(j.path, path)
	}
	f.Close()
	if err != nil {
		return err
	}
	log.Info("the session store is in the new format", "store", path)
	os.Remove(path + formerJournal)
	return nil
}

func readFormer(path, boot string) (h head, records []Record, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 2 * time.Second, ReadOnly: true})
	if errors.Is(err, berrors.ErrTimeout) {
		return h, nil, errInUse
	}
	if err != nil {
		return h, nil, err
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte("meta"))
		if meta == nil {
			return errEncoding
		}
		if v := meta.Get([]byte("version")); len(v) != 1 || v[0] != formerVersion {
			return fmt.Errorf("%w: version %v; move it away to start without sessions", errNotOurs, v)
		}
		recovery, generation := meta.Get([]byte("recovery")), meta.Get([]byte("journal"))
		if len(recovery) != 8 || len(generation) != 8 {
			return errEncoding
		}
		h = head{time.Unix(int64(binary.BigEndian.Uint64(recovery)), 0), string(meta.Get([]byte("boot")))}
		if h.boot != boot {
			return nil
		}
		for name, kind := range map[string]Kind{"associations": Association, "applications": Application, "usage": Usage} {
			b := tx.Bucket([]byte(name))
			if b == nil {
				continue
			}
			err := b.ForEach(func(k, v []byte) error {
				records = append(records, formerRecord(kind, k, v))
				return nil
			})
			if err != nil {
				return err
			}
		}
		sessions, err := readFormerJournal(path+formerJournal, binary.BigEndian.Uint64(generation))
		records = append(records, sessions...)
		return err
	})
	return h, records, err
}

// formerRecord is one of the database, whose keys were names and SEIDs. An application's data did not say its name.
func formerRecord(kind Kind, key, data []byte) Record {
	data = append([]byte{}, data...)
	switch kind {
	case Usage:
		return Record{kind, binary.BigEndian.Uint64(key), data}
	case Application:
		data = NamedData(string(key), data)
	}
	return Named(kind, string(key), data)
}

func readFormerJournal(path string, generation uint64) (records []Record, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is not there", errEncoding, path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < formerHead {
		return nil, errEncoding
	}
	var found places
	err = mapped(f, info.Size(), func(all []byte) error {
		if string(all[:8]) != formerMagic || binary.LittleEndian.Uint64(all[8:]) != generation {
			return errEncoding
		}
		found, _, err = findRecords(all, formerHead, formerPrefix)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = found.each(f, info.Size(), func(r Record) error {
		records = append(records, Record{r.Kind, r.Number, append([]byte{}, r.Data...)})
		return nil
	})
	return records, err
}
