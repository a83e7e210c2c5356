// SPDX-License-Identifier: Apache-2.0

package subscriber

// mostCommits are requests of the loop that wait for the session layer, so that a reload with many subscribers leaves
// room to requests over PFCP.
const mostCommits = 4096

// window bounds requests to the session layer.
type window struct {
	loop    *Loop
	out     int
	waiting []func()
}

// enter calls fn when there is room; its request's answer calls leave.
func (w *window) enter(fn func()) {
	if w.out >= mostCommits {
		w.waiting = append(w.waiting, fn)
		return
	}
	w.out++
	fn()
}

func (w *window) leave() {
	if len(w.waiting) == 0 {
		w.out--
		w.waiting = nil
		return
	}
	fn := w.waiting[0]
	w.waiting[0], w.waiting = nil, w.waiting[1:]
	fn()
}
