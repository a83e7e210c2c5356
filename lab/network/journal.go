// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"io"
	"sync"
)

// journal is what the user reads. Any goroutine writes.
type journal struct {
	out      io.Writer // may be nil
	lock     sync.Mutex
	problems []string // shown by `isthmus lab show`
}

func (j *journal) say(format string, args ...any) {
	if j.out != nil {
		fmt.Fprintf(j.out, format+"\n", args...)
	}
}

// problem prints one and notes it.
func (j *journal) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	j.lock.Lock()
	if len(j.problems) < 100 {
		j.problems = append(j.problems, text)
	}
	j.lock.Unlock()
	j.say("%s", text)
}

func (j *journal) noted() []string {
	j.lock.Lock()
	defer j.lock.Unlock()
	return append([]string{}, j.problems...)
}
