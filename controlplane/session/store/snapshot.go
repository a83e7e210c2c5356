// SPDX-License-Identifier: Apache-2.0

package store

import (
	"os"
	"time"
)

// Snapshot is a file as a start would find it at this moment: whole frames, also while a control plane writes or
// replaces it. A file that cannot be read whole is an error.
func Snapshot(path string) (data []byte, recovery time.Time, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, recovery, err
	}
	defer f.Close()
	err = guarded(func() error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		h, _, end, err := scan(f, info.Size())
		if err != nil {
			return err
		}
		recovery = h.recovery
		data = make([]byte, end)
		_, err = f.ReadAt(data, 0) // frames do not change once they are whole
		return err
	})
	return data, recovery, err
}

// Make writes a new store of this boot, whose recovery time stamp is later than after. fill puts its records.
func Make(path string, after time.Time, fill func(put func(Record) error) error) (recovery time.Time, err error) {
	h := head{recovery: newRecovery(after), boot: Boot()}
	f, err := create(path, h)
	if err != nil {
		return recovery, err
	}
	defer f.Close()
	j := journal{f: f, path: path, size: headSize}
	b := make([]byte, frameHead)
	flush := func() error {
		if len(b) == frameHead {
			return nil
		}
		seal(b)
		err := j.append(b)
		b = b[:frameHead]
		return err
	}
	err = fill(func(r Record) error {
		if b = appendRecord(b, r); len(b) < frameSize {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		err = f.Sync()
	}
	return h.recovery, err
}

const frameSize = 64 << 10 // of Make's frames, about
