// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/binary"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
)

// stored makes a store with a session, an association and a recovery time stamp of long ago.
func stored(t *testing.T) (path string, recovery time.Time) {
	t.Helper()
	path = t.TempDir() + "/sessions.db"
	t.Run("before", func(t *testing.T) {
		b := start(t, path, testSettings())
		for i := range uint32(2) {
			if r := b.establish(smf1, request(i+1, "10.46.0."+string(rune('1'+i)))); r.Cause != pfcp.CauseAccepted {
				t.Fatalf("%+v", r)
			}
		}
		if err := b.KeepAssociation(n4.StoredAssociation{ID: "smf1"}); err != nil {
			t.Fatal(err)
		}
	})
	recovery = time.Unix(1700000000, 0)
	edit(t, path, func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketMeta).Put(keyRecovery, binary.BigEndian.AppendUint64(nil, uint64(recovery.Unix())))
	})
	return path, recovery
}

func edit(t *testing.T, path string, fn func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(fn); err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T, path, boot string) *Plane {
	t.Helper()
	p, err := open(path, boot, testSettings(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// The data plane's sessions did not outlive a boot of the machine: ours do not either, and CP functions are told.
func TestStoreOfAnotherBoot(t *testing.T) {
	path, recovery := stored(t)
	t.Run("same", func(t *testing.T) {
		if p := opened(t, path, bootID()); p.Count("") != 2 || !p.Recovery().Equal(recovery) || len(p.Associations()) != 1 {
			t.Errorf("%d sessions, %v", p.Count(""), p.Recovery())
		}
	})
	var fresh time.Time
	t.Run("another", func(t *testing.T) {
		p := opened(t, path, "another")
		if fresh = p.Recovery(); p.Count("") != 0 || fresh.Equal(recovery) || len(p.Associations()) != 0 {
			t.Errorf("%d sessions, %v", p.Count(""), p.Recovery())
		}
	})
	t.Run("and again", func(t *testing.T) { // the stamp of this boot stays
		if p := opened(t, path, "another"); !p.Recovery().Equal(fresh) {
			t.Errorf("%v, was %v", p.Recovery(), fresh)
		}
	})
	t.Run("at once", func(t *testing.T) { // in the same second
		if p := opened(t, path, "third"); p.Recovery().Equal(fresh) {
			t.Errorf("%v twice", fresh)
		}
	})
}

// A file that a power cut left in pieces is moved aside; the control plane starts.
func TestStoreDamaged(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, path string){
		"short": func(t *testing.T, path string) { must(t, os.Truncate(path, 5000)) },
		"noise": func(t *testing.T, path string) { must(t, os.WriteFile(path, make([]byte, 1<<16), 0o600)) },
		"tree": func(t *testing.T, path string) { // both meta pages are whole, what they name is not
			data, err := os.ReadFile(path)
			must(t, err)
			for i := 2 * os.Getpagesize(); i < len(data); i++ {
				data[i] ^= 0xa5
			}
			must(t, os.WriteFile(path, data, 0o600))
		},
		"associations": func(t *testing.T, path string) {
			edit(t, path, func(tx *bbolt.Tx) error { return tx.Bucket(bucketAssociations).Put([]byte("smf1"), []byte("{")) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, recovery := stored(t)
			harm(t, path)
			p := opened(t, path, bootID())
			if p.Count("") != 0 || p.Recovery().Equal(recovery) {
				t.Errorf("%d sessions, %v", p.Count(""), p.Recovery())
			}
			if _, err := os.Stat(path + ".bad"); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("another version", func(t *testing.T) { // is the operator's to decide
		path, _ := stored(t)
		edit(t, path, func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyVersion, []byte{storeVersion + 1}) })
		if p, err := open(path, bootID(), testSettings(), slog.New(slog.DiscardHandler)); err == nil {
			p.Close()
			t.Error("opened")
		}
	})
}

// A session that cannot be brought back is a session lost, which CP functions learn from the recovery time stamp.
func TestStoreDropsSession(t *testing.T) {
	path, recovery := stored(t)
	j, err := openJournal(path+journalSuffix, generationOf(t, path), func(uint64, []byte) error { return nil })
	must(t, err)
	must(t, j.write([]record{{1, []byte{9}}}))
	j.close()
	if p := opened(t, path, bootID()); p.Count("") != 1 || p.Recovery().Equal(recovery) {
		t.Errorf("%d sessions, %v", p.Count(""), p.Recovery())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
