// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Confine keeps this process, and every process that it starts from now on, on the given CPUs; nil changes nothing.
// Threads that pin themselves, such as a gateway's workers, may leave them. restore undoes it for this process.
func Confine(cpus []int) (restore func(), err error) {
	if len(cpus) == 0 {
		return func() {}, nil
	}
	var before, wanted unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, err
	}
	for _, cpu := range cpus {
		wanted.Set(cpu)
	}
	if err := setThreads(&wanted); err != nil {
		return nil, err
	}
	return func() { setThreads(&before) }, nil
}

// setThreads sets the affinity of all our threads. New threads inherit their maker's.
func setThreads(set *unix.CPUSet) error {
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, entry := range list {
		tid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(tid, set); err != nil && err != unix.ESRCH {
			return err
		}
	}
	return nil
}
