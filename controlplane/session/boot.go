// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"encoding/binary"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// A store is worth something while the machine runs that wrote it. After a boot the data plane's sessions are gone, and the
// file is whatever a power cut left: it is not read beyond the page that says so. TS 23.527 §4.2: a UP function that lost its
// sessions tells so by another Recovery Time Stamp, upon which CP functions release what they have with it; keeping some of
// the old sessions would only put them in the way of the new ones.

const bootFile = "/proc/sys/kernel/random/boot_id"

// bootID is another after each boot of the machine, empty when it cannot be known.
func bootID() string {
	b, err := os.ReadFile(bootFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// guarded turns what a torn file does to its reader (a panic in bbolt, a fault beyond the end of the mapping) into an error.
func guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("unreadable: %v", r)
		}
	}()
	return fn()
}

// lookInto reads who wrote a store, without its list of free pages: reading that would end the process if the file is torn.
func lookInto(path string) (boot string, recovery time.Time, err error) {
	err = guarded(func() error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 2 * time.Second, ReadOnly: true})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.View(func(tx *bbolt.Tx) error {
			meta := tx.Bucket(bucketMeta)
			if meta == nil {
				return errEncoding
			}
			if !readable(meta.Get(keyVersion)) {
				return nil // openStore says what is wrong
			}
			boot = string(meta.Get(keyBoot))
			if v := meta.Get(keyRecovery); len(v) == 8 {
				recovery = time.Unix(int64(binary.BigEndian.Uint64(v)), 0)
			}
			return nil
		})
	})
	return boot, recovery, err
}

// damaged tells a file whose contents are wrong from one that cannot be had now.
func damaged(err error) bool {
	var path *fs.PathError
	return err != nil && !errors.As(err, &path) && !errors.Is(err, berrors.ErrTimeout) && !errors.Is(err, errNotOurs)
}

// beginStore opens the store, after moving aside one that is not to be used.
func beginStore(path, boot string, log *slog.Logger) (*store, error) {
	var last time.Time
	if info, err := os.Stat(path); path != "" && err == nil && info.Size() > 0 {
		wrote, recovery, err := lookInto(path)
		switch {
		case damaged(err):
			if err := moveAside(path, err, log); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		case !recovery.IsZero() && wrote != boot:
			last = recovery
			log.Warn("the machine was booted: sessions are gone, the recovery time stamp is a new one", "store", path)
			os.Remove(path + journalSuffix) // without the store it is nobody's
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
	}
	st, err := openStore(path, boot, last)
	if !damaged(err) {
		return st, err
	}
	if err := moveAside(path, err, log); err != nil {
		return nil, err
	}
	return openStore(path, boot, last)
}

// moveAside keeps a damaged file for whoever wants to know why.
func moveAside(path string, why error, log *slog.Logger) error {
	log.Error("the session store is damaged and moved aside; sessions are gone, the recovery time stamp is a new one",
		"store", path, "moved", path+".bad", "error", why)
	os.Rename(path+journalSuffix, path+journalSuffix+".bad") // if it is there
	return os.Rename(path, path+".bad")
}
