// SPDX-License-Identifier: Apache-2.0

package pppoe

import (
	"math/rand/v2"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

// A line counts up to its share, however many of its sessions send and how often; silent for a second, it does not
// count. Compared with a count of each session.
func TestUnderWay(t *testing.T) {
	const share, lines, sessions = 5, 4, 100
	random := rand.New(rand.NewPCG(1, 2))
	s := &Server{config: &Config{Begin: share * lineShare}}
	u := &s.underWay
	u.setShare(s.config.Begin / lineShare)
	now := time.Second
	slots := make([]int64, sessions) // in which each spoke; 0: it is not half open
	for range 20_000 {
		now += time.Duration(random.IntN(30)) * time.Millisecond
		u.at(now)
		n := random.IntN(sessions)
		line := lineKey{sTag: uint16(n % lines)}
		if slots[n] != 0 && u.slot-slots[n] < spokenSlots {
			u.add(slots[n], line, -1)
		}
		if slots[n] = 0; random.IntN(8) != 0 {
			slots[n] = u.slot
			u.add(u.slot, line, 1)
		}
		of, want := [lines]int{}, 0
		for n, slot := range slots {
			if slot != 0 && u.slot-slot < spokenSlots {
				of[n%lines]++
			}
		}
		for n, c := range of {
			want += min(c, share)
			testkit.Equal(t, s.hasShare(lineKey{sTag: uint16(n)}), c >= share, "line %d has its share", n)
		}
		testkit.Equal(t, u.count, want, "under way")
		if t.Failed() {
			return
		}
	}
	u.at(now + time.Hour)
	testkit.Equal(t, u.count, 0, "an hour later")
	testkit.Equal(t, len(u.line), 0, "lines an hour later")
}

// One line's sessions and PADI fill its share: another line's PADI has room, and passes the waiting ones.
func TestShareOfLine(t *testing.T) {
	s := &Server{config: &Config{Begin: 100}}
	s.underWay.setShare(s.config.Begin / lineShare)
	loud, other := lineKey{sTag: 1}, lineKey{sTag: 2}
	s.underWay.add(0, loud, 10_000)
	testkit.Equal(t, s.underWay.count, 25, "under way")
	testkit.ErrorIf(t, !s.hasShare(loud) || s.hasShare(other), "who has a share")
	w := &waiting{of: map[peer]int{}, line: map[lineKey]int{}}
	for n := range 3 {
		w.push(newcomer{who: peer{loud, [6]byte{byte(n)}}})
	}
	w.push(newcomer{who: peer{other, [6]byte{9}}})
	for range 3 { // as letBegin has them wait on
		w.push(w.pop())
	}
	testkit.Equal(t, w.queue[0].who.lineKey, other, "who is first now")
	for n, c := range w.queue {
		testkit.Equal(t, w.of[c.who], w.first+n, "number of the %d-th", n)
	}
	testkit.Equal(t, w.line[loud], 3, "of the line that has its share")
	testkit.Equal(t, len(w.of), 4, "who waits")
}
