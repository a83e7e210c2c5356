// SPDX-License-Identifier: Apache-2.0

package dynamic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"isthmus/controlplane/agent/signin"
	"isthmus/controlplane/alert"
	"isthmus/controlplane/metrics"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/view"
)

// SignedIn are the subscribers that sign in; nil: none is configured.
func (s *Sessions) SignedIn() *signin.SignIns {
	if s == nil {
		return nil
	}
	return s.SignIns
}

// N4 is view.Mobile's.
func (s *Sessions) N4() *n4.Snapshot {
	if s == nil || s.server == nil {
		return new(n4.Snapshot)
	}
	return s.server.Snapshot()
}

// Owner is view.Mobile's.
func (s *Sessions) Owner(seid uint64) (view.Owner, bool) {
	if s == nil {
		return view.Owner{}, false
	}
	one := s.Manager.Session(seid)
	if one == nil {
		return view.Owner{}, false
	}
	return view.Owner{Association: one.Owner, CPSEID: one.CP.SEID, DNN: one.APN, User: one.UserID}, true
}

// Collectors is view.Mobile's: those of nat_log.
func (s *Sessions) Collectors() (list []view.Collector) {
	if s == nil {
		return nil
	}
	for _, c := range s.blocks.States() {
		list = append(list, view.Collector(c))
	}
	return list
}

// SetDrained refuses new associations, or takes them again; false: there is no PFCP.
func (s *Sessions) SetDrained(on bool) bool {
	if s == nil || s.server == nil {
		return false
	}
	s.server.SetDrained(on)
	return true
}

// Release asks a CP function to release its association.
func (s *Sessions) Release(ctx context.Context, id string, period time.Duration) error {
	if s == nil || s.server == nil {
		return errors.New("there is no PFCP: the configuration has no pfcp.listen")
	}
	done := make(chan error, 1)
	s.server.RequestRelease(id, period, func(err error) { done <- err })
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("%q: %w; isthmus show association has those that there are", id, err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Figures adds to those of the metrics; false: there are no sessions.
func (s *Sessions) Figures(ctx context.Context, to *metrics.Snapshot) bool {
	if s == nil {
		return false
	}
	if s.server != nil {
		to.PFCP = s.server.Stats()
	}
	to.SignIns = s.SignIns.Figures(ctx)
	to.SnapshotsFailed = []uint64{s.Manager.Counts().SnapshotsFailed}
	if info, err := os.Stat(s.opt.Store); err == nil {
		to.StoreBytes = uint64(info.Size())
	}
	return true
}

// Limits are used and available figures.
func (s *Sessions) Limits() (list []alert.Limit) {
	if s == nil {
		return nil
	}
	for _, u := range s.Manager.PoolUse() {
		list = append(list, alert.Limit{Name: "pool/" + u.Instance + "/" + u.Family, Used: u.Used, Of: u.Size})
	}
	var disk unix.Statfs_t
	if unix.Statfs(filepath.Dir(s.opt.Store), &disk) == nil {
		// Space reserved for root does not count as free.
		list = append(list, alert.Limit{Name: "store", Used: disk.Blocks - min(disk.Blocks, disk.Bavail),
			Of: disk.Blocks})
	}
	return list
}

// Flush publishes counts of sessions, when many came or went.
func (s *Sessions) Flush() {
	if s != nil {
		s.Tally.Flush()
	}
}
