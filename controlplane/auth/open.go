// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"slices"
	"sync"
	"time"

	"isthmus/controlplane/config"
)

// open are pending requests, by their token: a stream ends with its token. The zero value is ready.
type open struct {
	lock sync.Mutex
	last uint64
	by   map[uint64]opened
}

type opened struct {
	token  *config.Token // of a cookie: its login's own
	cancel context.CancelFunc
}

// enter returns the context in which a request of the token is answered, and what ends that.
func (o *open) enter(ctx context.Context, t *config.Token) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.by == nil {
		o.by = map[uint64]opened{}
	}
	o.last++
	id := o.last
	o.by[id] = opened{t, cancel}
	return ctx, func() {
		cancel()
		o.lock.Lock()
		defer o.lock.Unlock()
		delete(o.by, id)
	}
}

// grace is for a request that changed its own token: it is answered.
const grace = time.Second

// keep ends the requests of tokens that are gone, or have another role. Requests without a token stay.
func (o *open) keep(tokens []config.Token) {
	o.lock.Lock()
	defer o.lock.Unlock()
	for _, r := range o.by {
		if !slices.Contains(tokens, *r.token) {
			time.AfterFunc(grace, r.cancel)
		}
	}
}

// end ends the requests of one login, except its caller's.
func (o *open) end(t *config.Token) {
	o.lock.Lock()
	defer o.lock.Unlock()
	for _, r := range o.by {
		if r.token == t {
			time.AfterFunc(grace, r.cancel)
		}
	}
}
