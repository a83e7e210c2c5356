// SPDX-License-Identifier: Apache-2.0

package httpd

import (
	"context"
	"sync"
)

// Places are shared by clients of long answers: streams, traces. A client gets one more while it holds fewer than are
// free: alone half of them, and the next client half of the rest.
type Places struct {
	limit int

	lock sync.Mutex
	held int
	by   map[string]int
	left chan struct{} // closed when a place is given back; nil: no waiter
}

// NewPlaces returns so many.
func NewPlaces(limit int) *Places { return &Places{limit: limit, by: map[string]int{}} }

// Take gives a client a place until leave is called, which may be repeated. nil: no place for this client.
func (p *Places) Take(client string) (leave func()) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.by[client] >= p.limit-p.held {
		return nil
	}
	p.held++
	p.by[client]++
	return sync.OnceFunc(func() {
		p.lock.Lock()
		defer p.lock.Unlock()
		p.held--
		if p.by[client]--; p.by[client] == 0 {
			delete(p.by, client)
		}
		if p.left != nil {
			close(p.left)
			p.left = nil
		}
	})
}

// Wait is Take that waits for a place until ctx ends.
func (p *Places) Wait(ctx context.Context, client string) (leave func()) {
	for {
		p.lock.Lock()
		if p.left == nil {
			p.left = make(chan struct{})
		}
		left := p.left
		p.lock.Unlock()
		if leave := p.Take(client); leave != nil {
			return leave
		}
		select {
		case <-left:
		case <-ctx.Done():
			return nil
		}
	}
}

// Held is how many are taken.
func (p *Places) Held() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.held
}
