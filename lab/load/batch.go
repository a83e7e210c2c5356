// SPDX-License-Identifier: Apache-2.0

package load

import (
	"net/netip"

	"isthmus/controlplane/mmsg"
)

// Requests and answers go in batches: with one system call each the generator would need more CPU than what it
// measures. Answers bear the kernel's time stamps, so that waiting for a CPU here does not count as the user plane's
// latency.
const (
	atOnce      = 32
	longest     = 2048     // of what we send
	longestTake = 64 << 10 // of what we are sent
)

type inbox struct {
	batch   *mmsg.Batch
	buffers [][]byte
}

func newInbox(r *run) (*inbox, error) {
	in := &inbox{batch: mmsg.New(atOnce)}
	for i := range atOnce {
		in.buffers = append(in.buffers, make([]byte, longestTake))
		in.batch.SetBuffer(i, in.buffers[i])
	}
	return in, in.batch.Stamped(r.raw)
}

// outbox collects what is to be sent. One goroutine uses it.
type outbox struct {
	r       *run
	batch   *mmsg.Batch
	buffers [][]byte
	count   int
}

func newOutbox(r *run) *outbox {
	out := &outbox{r: r, batch: mmsg.New(atOnce)}
	for i := range atOnce {
		out.buffers = append(out.buffers, make([]byte, 0, longest))
		out.batch.SetAddress(i, netip.AddrPort{})
	}
	return out
}

// room is where the next message is to be written; put takes it, unless it is empty.
func (o *outbox) room() []byte { return o.buffers[o.count] }

func (o *outbox) put(b []byte) {
	if len(b) == 0 {
		return
	}
	o.buffers[o.count] = b
	if o.count++; o.count == len(o.buffers) {
		o.flush()
	}
}

// flush sends. What cannot be sent is a lost packet: it is repeated.
func (o *outbox) flush() {
	for done := 0; done < o.count; {
		for i, b := range o.buffers[done:o.count] {
			o.batch.SetBuffer(i, b)
		}
		n, _ := o.batch.Send(o.r.raw, o.count-done)
		done += max(n, 1)
	}
	for i := range o.count {
		o.buffers[i] = o.buffers[i][:0]
	}
	o.count = 0
}
