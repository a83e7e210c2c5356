// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
)

var (
	bucketMeta         = []byte("meta")
	bucketSessions     = []byte("sessions") // rising number -> encoded session, in a store of version 1
	bucketAssociations = []byte("associations")
	bucketApplications = []byte("applications")
	bucketUsage        = []byte("usage") // SEID -> usage that waits for its CP function
	keyVersion         = []byte("version")
	keyJournal         = []byte("journal") // its generation
	keyRecovery        = []byte("recovery")
	keyBoot            = []byte("boot") // of the machine that wrote it
)

const (
	storeVersion  = 2
	treeOfSession = 1 // the version in which sessions were in the store itself
)

// store keeps sessions over a restart of the control plane. Transactions are written through to the kernel and never synced to
// the disk, which would cost every hundredth request 10 ms: a process that dies loses nothing, and when the machine dies the
// sessions are gone anyhow (boot.go). Sessions, which come and go by the thousand each second, are in the journal beside the
// database: in a tree each transaction would cost ten times as much. Used under Plane's mu.
type store struct {
	db       *bbolt.DB // nil: nothing is kept
	log      *journal  // nil until each has been called
	last     uint64    // number given out last
	recovery time.Time
	boot     string

	generation uint64 // of the journal
}

// errNotOurs is what must not be moved aside: the operator is to decide.
var errNotOurs = errors.New("not a store that this program may replace")

// openStore opens a store. after is the recovery time stamp of one that is no more, zero without: a new one is another.
func openStore(path, boot string, after time.Time) (*store, error) {
	s := &store{recovery: newRecovery(after), boot: boot}
	if path == "" {
		return s, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 2 * time.Second, NoSync: true, NoFreelistSync: true,
		FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.db = db
	if err := db.Update(s.prepare); err != nil {
		db.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func (s *store) prepare(tx *bbolt.Tx) error {
	for _, name := range [][]byte{bucketMeta, bucketAssociations, bucketApplications, bucketUsage} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(bucketMeta)
	if v := meta.Get(keyVersion); v == nil {
		if err := meta.Put(keyVersion, []byte{storeVersion}); err != nil {
			return err
		}
	} else if !readable(v) {
		return fmt.Errorf("%w: version %v, this program reads %d; move it away to start without sessions", errNotOurs, v, storeVersion)
	}
	if err := meta.Put(keyBoot, []byte(s.boot)); err != nil {
		return err
	}
	if v := meta.Get(keyRecovery); len(v) == 8 {
		s.recovery = time.Unix(int64(binary.BigEndian.Uint64(v)), 0)
		return nil
	}
	return meta.Put(keyRecovery, binary.BigEndian.AppendUint64(nil, uint64(s.recovery.Unix())))
}

func readable(version []byte) bool {
	return len(version) == 1 && (version[0] == storeVersion || version[0] == treeOfSession)
}

// newRecovery is a recovery time stamp that is not an earlier one.
func newRecovery(after time.Time) time.Time {
	now := time.Now().Truncate(time.Second)
	if now.Equal(after) {
		return now.Add(time.Second)
	}
	return now
}

// renew says that sessions were lost: TS 23.527 §4.2, CP functions see another Recovery Time Stamp in the next heartbeat.
func (s *store) renew() error {
	s.recovery = newRecovery(s.recovery)
	if s.db == nil {
		return nil
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketMeta).Put(keyRecovery, binary.BigEndian.AppendUint64(nil, uint64(s.recovery.Unix())))
	})
}

func (s *store) number() uint64 {
	s.last++
	return s.last
}

func (s *store) write(records []record) error {
	if s.db == nil || len(records) == 0 {
		return nil
	}
	return s.log.write(records)
}

func (s *store) close() {
	if s.db != nil {
		s.log.close()
		s.db.Close()
		s.db, s.log = nil, nil
	}
}

// each opens the journal and gives all sessions, in the order in which they came. Their bytes are fn's only until it returns.
func (s *store) each(fn func(number uint64, data []byte) error) error {
	if s.db == nil {
		return nil
	}
	found := func(number uint64, data []byte) error {
		s.last = max(s.last, number)
		return fn(number, data)
	}
	err := s.db.View(func(tx *bbolt.Tx) error {
		if v := tx.Bucket(bucketMeta).Get(keyJournal); len(v) == 8 {
			s.generation = binary.BigEndian.Uint64(v)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if path := s.db.Path() + journalSuffix; s.generation != 0 {
		s.log, err = openJournal(path, s.generation, found)
	} else {
		err = s.beginJournal(path, found)
	}
	return err
}

// beginJournal makes the journal of a new store, or of one of version 1, whose sessions go over to it. The store names it when
// it is whole: until then the sessions are where they were.
func (s *store) beginJournal(path string, fn func(number uint64, data []byte) error) (err error) {
	generation := rand.Uint64() | 1
	if s.log, err = createJournal(path, generation); err != nil {
		return err
	}
	s.generation = generation
	return s.db.Update(func(tx *bbolt.Tx) error {
		if old := tx.Bucket(bucketSessions); old != nil {
			var records []record
			err := old.ForEach(func(k, v []byte) error {
				if len(k) != 8 {
					return errEncoding
				}
				number := binary.BigEndian.Uint64(k)
				if records = append(records, record{number, v}); len(records) == reload {
					if err := s.log.write(records); err != nil {
						return err
					}
					records = records[:0]
				}
				return fn(number, v)
			})
			if err == nil {
				err = s.log.write(records)
			}
			if err == nil {
				err = tx.DeleteBucket(bucketSessions)
			}
			if err != nil {
				return err
			}
		}
		meta := tx.Bucket(bucketMeta)
		if err := meta.Put(keyVersion, []byte{storeVersion}); err != nil {
			return err
		}
		return meta.Put(keyJournal, binary.BigEndian.AppendUint64(nil, generation))
	})
}

// tidy keeps the journal from growing without end: a bit at a time. It tells whether there is more to do.
func (s *store) tidy(all *records) (more bool, err error) {
	j := s.log
	if j == nil {
		return false, nil
	}
	if j.next == nil {
		if !j.outdated(all.bytes) {
			return false, nil
		}
		if err := j.begin(s.generation); err != nil {
			return false, err
		}
	}
	done, err := j.advance(all)
	return !done && err == nil, err
}

func (s *store) put(bucket []byte, key string, v any) error {
	if s.db == nil {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(key), data) })
}

func (s *store) delete(bucket []byte, key string) error {
	if s.db == nil {
		return nil
	}
	return s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Delete([]byte(key)) })
}

func (s *store) associations() ([]n4.StoredAssociation, error) {
	var list []n4.StoredAssociation
	if s.db == nil {
		return nil, nil
	}
	err := s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketAssociations).ForEach(func(_, v []byte) error {
			var a n4.StoredAssociation
			if err := json.Unmarshal(v, &a); err != nil {
				return err
			}
			list = append(list, a)
			return nil
		})
	})
	return list, err
}

func (s *store) applications() (map[string][]pfcp.PFD, error) {
	apps := map[string][]pfcp.PFD{}
	if s.db == nil {
		return apps, nil
	}
	err := s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketApplications).ForEach(func(k, v []byte) error {
			var list []pfcp.PFD
			if err := json.Unmarshal(v, &list); err != nil {
				return err
			}
			apps[string(k)] = list
			return nil
		})
	})
	return apps, err
}

// load brings back sessions, associations and PFDs, and builds the indices. A session that cannot be read, or does not fit
// the configuration any more, is dropped and said, also to CP functions: by another recovery time stamp.
func (p *Plane) load() error {
	apps, err := p.store.applications()
	if err != nil {
		return err
	}
	for name, list := range apps {
		if filters, bad := expandPFDs(list); bad == nil {
			p.apps[name], p.pfds[name] = list, filters
		}
	}
	stored, err := p.store.associations()
	if err != nil {
		return err
	}
	for _, a := range stored {
		p.x.associate(a.ID, a.Set)
	}
	t := newTxn()
	dropped := 0
	err = p.store.each(func(number uint64, data []byte) error {
		s, err := decode(data)
		if err == nil {
			err = p.restore(s, number)
		}
		if err != nil {
			if dropped++; dropped <= 10 {
				p.log.Error("a stored session is dropped", "number", number, "error", err)
			}
			t.records = append(t.records, record{number, nil})
		}
		return nil
	})
	if err == nil {
		err = p.store.write(t.records)
	}
	if err == nil && dropped > 0 {
		p.log.Error("stored sessions are dropped; the recovery time stamp is a new one", "sessions", dropped)
		err = p.store.renew()
	}
	if err == nil {
		err = p.loadLate()
	}
	return err
}

// restore enters a stored session.
func (p *Plane) restore(s *Session, number uint64) error {
	if err := p.set.check(s); err != nil {
		return err
	}
	p.set.fit(s)
	c, bad := (&compiler{set: p.set, pfds: p.pfds, s: s, lenient: true}).run()
	if bad != nil {
		return bad
	}
	if p.x.session[s.SEID] != 0 || s.SEID == 0 {
		return errors.New("its SEID is impossible")
	}
	if taken, other := p.x.conflict(s.SEID, c); taken || other != 0 {
		return errors.New("its F-TEID or UE address is another session's")
	}
	o := p.x.owner(s.Owner)
	o.sessions++
	p.x.regroup(s.SEID, nil, groupsOf(s, o))
	p.x.enter(s, number, o)
	p.x.add(s.SEID, c)
	for i := range s.QER { // the numbers of shared meters stay, or the data plane would begin new ones
		if q := &s.QER[i]; q.Correlation != nil && q.Share != 0 {
			key := shareKey{s.Association, *q.Correlation}
			x := p.shares.by[key]
			if x == nil {
				x = &share{id: q.Share, worker: s.Worker}
				p.shares.by[key], p.shares.used[q.Share] = x, true
			}
			x.users++
		}
	}
	for _, o := range c.objects {
		if p.objects[o.name] == nil {
			p.objects[o.name] = &holding{object: o}
		}
		p.objects[o.name].users++
	}
	return nil
}
