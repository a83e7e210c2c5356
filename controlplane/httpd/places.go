// SPDX-License-Identifier: Apache-2.0

package httpd

import "sync"

// Places are shared by clients of what lasts as long as a client likes: streams, traces. A client gets one more while
// it holds fewer than are free: alone half of them, and what it leaves is there for others in the same way.
type Places struct {
	limit int

	lock sync.Mutex
	held int
	by   map[string]int
}

// NewPlaces returns so many.
func NewPlaces(limit int) *Places { return &Places{limit: limit, by: map[string]int{}} }

// Take gives a client a place until leave is called, which may be done again. nil: there is none for this client.
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
	})
}

// Held is how many are taken.
func (p *Places) Held() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.held
}
