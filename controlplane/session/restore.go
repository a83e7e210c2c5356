// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"time"

	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/store"
)

// Restored is what a store of another time or machine gives.
type Restored struct {
	Subscribers int // who signed in, with their leases
	Left        int // sessions of CP functions
	Recovery    time.Time
	Why         error // this version cannot read it, and takes over nothing but the time stamp; nil: it can
}

// Restore makes, of a store that was kept elsewhere, one for the next start.
//
// Sessions of CP functions and their associations stay behind. The Recovery Time Stamp is later than that of the store,
// than that of a store in its place (after), and than any given out up to now. Since the copy was made, its CP
// functions have established, modified and deleted sessions. With the old time stamp a user plane would claim to have
// them all. TS 23.527 §4.2: a restart is detected by another Recovery Time Stamp. CP functions then take all sessions
// for lost. They set them up again, with F-TEIDs and UE addresses that old ones would still occupy.
//
// Subscribers who signed in come back with their leases, as after the end of both processes. RFC 2131 §2.1 has a server
// keep bindings over its restarts. A client does not notice that its server lost them until it renews. What is
// outdated ends by itself: leases by their time, PPPoE by its keep-alive.
func Restore(from, to string, after time.Time) (r Restored, err error) {
	own, recovery, err := r.survey(from)
	if err != nil {
		return r, err
	}
	if recovery.After(after) {
		after = recovery
	}
	r.Recovery, err = store.Make(to, after, func(put func(store.Record) error) error {
		if r.Why != nil {
			return nil
		}
		_, _, err := store.Read(from, func(record store.Record) error {
			if own.has(record) {
				return put(record)
			}
			return nil
		})
		return err
	})
	return r, err
}

// kept are the records of subscribers who signed in.
type kept struct{ sessions, seids map[uint64]bool } // numbers of their records, SEIDs

func (k *kept) has(r store.Record) bool {
	switch r.Kind {
	case store.Session:
		return k.sessions[r.Number]
	case store.Usage, store.Reading:
		return k.seids[r.Number]
	}
	return r.Kind == store.Line
}

// survey finds the records that Restore takes, and counts them.
func (r *Restored) survey(from string) (own kept, recovery time.Time, err error) {
	own = kept{map[uint64]bool{}, map[uint64]bool{}}
	recovery, _, err = store.Read(from, func(record store.Record) error {
		switch record.Kind {
		case store.Session:
			s, err := rules.Decode(record.Data)
			switch {
			case errors.Is(err, rules.ErrVersion):
				return err
			case err == nil && s.Owner == LineOwner:
				own.sessions[record.Number], own.seids[s.SEID] = true, true
			default:
				r.Left++
			}
		case store.Line:
			own.seids[record.Number] = true
			r.Subscribers++
		}
		return nil
	})
	if errors.Is(err, rules.ErrVersion) || store.Foreign(err) {
		*r, err = Restored{Why: err}, nil
	}
	return own, recovery, err
}
