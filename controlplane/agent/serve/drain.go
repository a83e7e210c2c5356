// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/n4"
)

// Associations are those over PFCP, as a drain takes them out of service.
type Associations interface {
	// SetDrained refuses new ones, or takes them again; false: there is no PFCP.
	SetDrained(on bool) bool
}

// Subscribers are those who sign in, as a drain takes them out of service.
type Subscribers interface {
	// Drain ends all and refuses new ones, until Resume.
	Drain(ctx context.Context, out *v1.Drained) error
	Resume(ctx context.Context) error
	Enabled() bool // they sign in here
}

// Bounds of a drain. With a minute for sign-in, it ends before the connection's limit.
const (
	withdrawTime = 5 * time.Second        // until the kernel has withdrawn the announcements
	mostGraceful = 90 * time.Second       // that CP functions get for their sessions
	afterwards   = 5 * time.Second        // for their last requests
	drainLook    = 100 * time.Millisecond // between two looks at what is left
)

// drain takes the gateway out of service: new traffic is led elsewhere before sessions end. A role that is not
// configured has nothing to wait for.
func (a *API) drain(ctx context.Context, keep bool, graceful time.Duration) (out v1.Drained, err error) {
	out.Kept, out.Announced, out.Associations = keep, a.announced(), []v1.DrainedAssociation{}
	is := v1.Drain{Since: a.State.Status().Drain.Since, Announced: keep, SignIns: a.Subscribers.Enabled(),
		Associations: a.Associations.SetDrained(true)}
	if is.Since.IsZero() {
		is.Since = time.Now()
	}
	if err = a.Owner.Drain(ctx, is); err != nil {
		return out, err
	}
	if !keep {
		a.until(ctx, withdrawTime, func() bool { return a.announced() == 0 })
	}
	released := make(chan struct{})
	go func() {
		defer close(released)
		out.Associations = a.releaseAll(ctx, graceful)
	}()
	var in v1.Drained
	err = a.Subscribers.Drain(ctx, &in)
	<-released
	out.SignIn, out.Ended, out.Accounting, out.File = in.SignIn, in.Ended, in.Accounting, in.File
	out.Sessions = a.Sessions.N4().Sessions
	return out, err
}

// resume takes all of a drain back.
func (a *API) resume(ctx context.Context) error {
	if err := a.Subscribers.Resume(ctx); err != nil {
		return err
	}
	a.Associations.SetDrained(false)
	return a.Owner.Drain(ctx, v1.Drain{})
}

// announced is how many prefixes routing daemons have from us.
func (a *API) announced() (n int) {
	for _, k := range a.State.Status().Kernel {
		n += k.Announced
	}
	return n
}

// until waits for a condition, so long at most.
func (a *API) until(ctx context.Context, limit time.Duration, is func() bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	look := time.NewTicker(drainLook)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// releaseAll asks the CP functions to release their associations (TS 29.244 §6.2.7.3), which answer with requests of
// their own (§6.2.8), and waits for those that agreed.
func (a *API) releaseAll(ctx context.Context, graceful time.Duration) []v1.DrainedAssociation {
	rows := a.Sessions.N4().Associations
	list := make([]v1.DrainedAssociation, len(rows))
	var group sync.WaitGroup
	for i := range rows {
		one := &list[i]
		one.ID, one.State = rows[i].ID, "left"
		group.Go(func() {
			if err := a.Sessions.Release(ctx, one.ID, graceful); err != nil {
				one.State, one.Why = "refused", err.Error()
			}
		})
	}
	group.Wait()
	there := func(one v1.DrainedAssociation) bool {
		return slices.ContainsFunc(a.Sessions.N4().Associations,
			func(r n4.AssociationRow) bool { return r.ID == one.ID })
	}
	waits := func(one v1.DrainedAssociation) bool { return one.State == "left" && there(one) }
	a.until(ctx, graceful+afterwards, func() bool { return !slices.ContainsFunc(list, waits) })
	for i := range list {
		if !there(list[i]) {
			list[i].State, list[i].Why = "released", ""
		}
	}
	return list
}

func (a *API) handleDrain(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	keep := query.Get("keep") == "true"
	seconds, err := strconv.ParseUint(cmp.Or(query.Get("graceful"), "0"), 10, 32)
	graceful := time.Duration(seconds) * time.Second
	if err == nil && graceful > mostGraceful {
		err = fmt.Errorf("graceful: %d seconds are more than %d; isthmus association release gives more", seconds,
			int(mostGraceful.Seconds()))
	}
	var out v1.Drained
	if err == nil {
		out, err = a.drain(r.Context(), keep, graceful)
	}
	auth.Did(r.Context(), a.Events, "gateway.drained", "", err, "announced", out.Announced, "kept", out.Kept, "ended",
		out.Ended, "accounting", out.Accounting, "associations", len(out.Associations), "sessions", out.Sessions)
	answer(w, out, err)
}

func (a *API) handleResume(w http.ResponseWriter, r *http.Request) {
	err := a.resume(r.Context())
	auth.Did(r.Context(), a.Events, "gateway.resumed", "", err)
	answer(w, v1.Result{}, err)
}

// status adds what others than the reconciler know.
func (a *API) status() v1.Status {
	s := a.State.Status()
	s.Associations = len(a.Sessions.N4().Associations)
	return s
}
