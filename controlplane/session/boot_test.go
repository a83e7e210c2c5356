// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/store"
	"isthmus/controlplane/testkit"
)

// stored makes a store with a session, an association and a recovery time stamp of long ago.
func stored(t *testing.T) (path string, recovery time.Time) {
	t.Helper()
	path = t.TempDir() + "/sessions.db"
	t.Run("before", func(t *testing.T) {
		b := start(t, path, testSettings())
		for i := range uint32(2) {
			wants(t, pfcp.CauseAccepted, b.establish(smf1, request(i+1, "10.46.0."+string(rune('1'+i)))))
		}
		testkit.Must(t, b.KeepAssociation(n4.StoredAssociation{ID: "smf1"}))
	})
	recovery = time.Unix(1700000000, 0)
	stamp(t, path, recovery)
	return path, recovery
}

// stamp gives a store another recovery time stamp.
func stamp(t *testing.T, path string, recovery time.Time) {
	t.Helper()
	harm(t, path, func(data []byte) {
		sealed(data, func(head []byte) { binary.LittleEndian.PutUint64(head[8:], uint64(recovery.Unix())) })
	})
}

// sealed changes the head of a file, whose sum is right then.
func sealed(data []byte, fn func(head []byte)) {
	fn(data)
	binary.LittleEndian.PutUint32(data[56:], crc32.Checksum(data[:56], crc32.MakeTable(crc32.Castagnoli)))
}

// harm changes a file.
func harm(t *testing.T, path string, fn func(data []byte)) {
	t.Helper()
	data, err := os.ReadFile(path)
	testkit.Must(t, err)
	fn(data)
	testkit.Must(t, os.WriteFile(path, data, 0o600))
}

func opened(t *testing.T, path, boot string) *Manager {
	t.Helper()
	p, err := open(path, boot, testSettings(), slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	t.Cleanup(p.Close)
	return p
}

// The machine has booted, so the data plane's sessions are gone: ours go too, and CP functions see a later recovery
// time stamp.
func TestStoreOfAnotherBoot(t *testing.T) {
	path, recovery := stored(t)
	t.Run("same", func(t *testing.T) {
		if p := opened(t, path, store.Boot()); p.Count("") != 2 || !p.Recovery().Equal(recovery) ||
			len(p.Associations()) != 1 {
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
	for name, how := range map[string]func(t *testing.T, path string){
		"short": func(t *testing.T, path string) { testkit.Must(t, os.Truncate(path, 50)) },
		"tiny":  func(t *testing.T, path string) { testkit.Must(t, os.Truncate(path, 5)) },
		"noise": func(t *testing.T, path string) {
			testkit.Must(t, os.WriteFile(path, make([]byte, 1<<16), 0o600))
		},
		"head":  func(t *testing.T, path string) { harm(t, path, func(data []byte) { data[20] ^= 1 }) },
		"frame": func(t *testing.T, path string) { harm(t, path, func(data []byte) { data[80] ^= 1 }) },
		"length": func(t *testing.T, path string) {
			harm(t, path, func(data []byte) { data[64+2] ^= 0x10 }) // longer than the file
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, recovery := stored(t)
			how(t, path)
			p := opened(t, path, store.Boot())
			testkit.ErrorIf(t, p.Count("") != 0 || p.Recovery().Equal(recovery),
				"%d sessions, %v", p.Count(""), p.Recovery())
			_, err := os.Stat(path + ".bad")
			testkit.ErrorIf(t, err != nil, "%v", err)
		})
	}
}

// encoding is the version of a stored session, its first byte.
var encoding = rules.AppendSession(nil, &rules.Session{})[0]

// A store of another version is moved aside whole, and the log says whether the file or the session encoding is older.
// The new recovery time stamp is later than the former, here of a clock an hour ahead.
func TestStoreOfAnotherVersion(t *testing.T) {
	for name, one := range map[string]struct {
		how  func(t *testing.T, path string)
		says string
	}{
		"file": {func(t *testing.T, path string) {
			harm(t, path, func(data []byte) { sealed(data, func(head []byte) { copy(head, "isthmus2") }) })
		}, `\"isthmus2\", not \"isthmus3\"`},
		"session": {func(t *testing.T, path string) {
			s, err := store.Open(path, store.Boot(), slog.New(slog.DiscardHandler))
			testkit.Must(t, err)
			testkit.Must(t, s.Write([]store.Record{sessionRecord(9, []byte{encoding - 1})}))
			s.Close()
		}, fmt.Sprintf("version %d, not %d", encoding-1, encoding)},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := stored(t)
			recovery := time.Now().Add(time.Hour).Truncate(time.Second)
			stamp(t, path, recovery)
			one.how(t, path)
			before, err := os.ReadFile(path)
			testkit.Must(t, err)
			var log bytes.Buffer
			p, err := open(path, store.Boot(), testSettings(), slog.New(slog.NewTextHandler(&log, nil)))
			testkit.Must(t, err)
			defer p.Close()
			good := p.Count("") == 0 && len(p.Associations()) == 0 && p.Recovery().After(recovery)
			testkit.ErrorIf(t, !good || p.Moved().To != path+".bad" || !strings.Contains(log.String(), one.says),
				"%d sessions, %v, %+v\n%s", p.Count(""), p.Recovery(), p.Moved(), log.String())
			aside, err := os.ReadFile(path + ".bad")
			testkit.ErrorIf(t, err != nil || !bytes.Equal(aside, before), "%d of %d bytes, %v", len(aside), len(before),
				err)
		})
	}
}

// The control plane starts although the disk is full (a memory file that may not grow) and there is a record to drop.
func TestStoreDropsRecordOnFullDisk(t *testing.T) {
	path, recovery := stored(t)
	s, err := store.Open(path, store.Boot(), slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	testkit.Must(t, s.Write([]store.Record{sessionRecord(1, []byte{encoding})}))
	s.Close()
	data, err := os.ReadFile(path)
	testkit.Must(t, err)
	fd, err := unix.MemfdCreate("store", unix.MFD_ALLOW_SEALING)
	testkit.Must(t, err)
	defer unix.Close(fd)
	full := fmt.Sprintf("/proc/self/fd/%d", fd)
	testkit.Must(t, os.WriteFile(full, data, 0o600))
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW)
	testkit.Must(t, err)
	if p := opened(t, full, store.Boot()); p.Count("") != 1 || p.Recovery().Equal(recovery) ||
		len(p.Associations()) != 1 {
		t.Errorf("%d sessions, %v", p.Count(""), p.Recovery())
	}
}

// An unrestorable record is lost, which CP functions see by the recovery time stamp; the rest is restored.
func TestStoreDropsRecord(t *testing.T) {
	for name, r := range map[string]store.Record{
		"session":     sessionRecord(1, []byte{encoding}),
		"association": store.Named(store.Association, "smf9", []byte("{")),
		"application": store.Named(store.Application, "web", []byte{200}),
		"usage":       {Kind: store.Usage, Number: 1, Data: []byte{1}},
		"unknown":     {Kind: 200, Number: 1, Data: []byte{1}},
	} {
		t.Run(name, func(t *testing.T) {
			path, recovery := stored(t)
			s, err := store.Open(path, store.Boot(), slog.New(slog.DiscardHandler))
			testkit.Must(t, err)
			testkit.Must(t, s.Write([]store.Record{r}))
			s.Close()
			sessions := 2
			if r.Kind == store.Session {
				sessions = 1
			}
			p := opened(t, path, store.Boot())
			if p.Count("") != sessions || p.Recovery().Equal(recovery) || len(p.Associations()) != 1 {
				t.Errorf("%d sessions, %v", p.Count(""), p.Recovery())
			}
			recovery = p.Recovery()
			p.Close()
			if p := opened(t, path, store.Boot()); !p.Recovery().Equal(recovery) {
				t.Error("it is dropped again")
			}
		})
	}
}

// A store is looked into while it is in use, and what is wrong in it is named.
func TestInspect(t *testing.T) {
	path, recovery := stored(t)
	p := opened(t, path, store.Boot())
	testkit.Must(t, p.storeApplication("web", []pfcp.PFD{}))
	testkit.Must(t, p.file.store.Write([]store.Record{{Kind: store.Usage, Number: 1, Data: []byte{}}}))
	var out bytes.Buffer
	c, err := Inspect(path, &out)
	if err != nil || len(c.Faults) != 0 || c.Sessions != 2 || c.Associations != 1 || c.Applications != 1 ||
		c.Usages != 1 || c.Boot != store.Boot() || !c.Recovery.Equal(recovery) {
		t.Errorf("%+v %v", c, err)
	}
	kinds := map[string]int{}
	for line := range strings.Lines(out.String()) {
		var one map[string]any
		testkit.Must(t, json.Unmarshal([]byte(line), &one))
		for kind := range one {
			kinds[kind]++
		}
	}
	if !maps.Equal(kinds, map[string]int{"session": 2, "association": 1, "application": 1, "usage": 1}) ||
		!strings.Contains(out.String(), "10.46.0.2") {
		t.Error(out.String())
	}
	testkit.Must(t, p.file.store.Write([]store.Record{sessionRecord(1, []byte{encoding})}))
	if c, err = Inspect(path, nil); err != nil || len(c.Faults) != 1 || c.Sessions != 1 {
		t.Errorf("%+v %v", c, err)
	}
	harm(t, path, func(data []byte) { data[80] ^= 1 })
	if _, err = Inspect(path, nil); err == nil {
		t.Error("a broken frame was read")
	}
}
