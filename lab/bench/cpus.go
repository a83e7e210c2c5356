// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// ParseCPUs reads "2,3" or "2-5".
func ParseCPUs(s string) ([]int, error) {
	var list []int
	for part := range strings.SplitSeq(s, ",") {
		if part == "" {
			continue
		}
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		a, errLow := strconv.ParseUint(low, 10, 12)
		b, errHigh := strconv.ParseUint(high, 10, 12)
		if errLow != nil || errHigh != nil || a > b {
			return nil, fmt.Errorf("%q is no list of CPUs such as 2,3 or 2-5", s)
		}
		for i := a; i <= b; i++ {
			list = append(list, int(i))
		}
	}
	return list, nil
}

// ChooseCPUs returns a CPU for each worker: the requested ones, none for "none", else the last permitted ones. With
// more workers than CPUs none is pinned.
func ChooseCPUs(wanted string, workers int) ([]int, error) {
	switch wanted {
	case "none":
		return nil, nil
	case "":
		list := allowedCPUs()
		if workers < 1 || len(list) < workers {
			return nil, nil
		}
		return list[len(list)-workers:], nil
	}
	return ParseCPUs(wanted)
}

// Placement decides on which CPUs workers, the tester's threads and everything else run. Wanted are the command line's
// values: lists, "none", or empty for the default. By default workers get the last permitted CPUs, the tester's threads
// the first, everything else the CPUs without workers. With too few CPUs, nothing is pinned.
func Placement(workersWanted, testerWanted, controlWanted string, workers, threads int) (worker, tester, control []int,
	err error) {
	allowed := allowedCPUs()
	if worker, err = ChooseCPUs(workersWanted, workers); err != nil {
		return nil, nil, nil, err
	}
	if len(worker) > 0 && len(worker) != workers {
		return nil, nil, nil, fmt.Errorf("%d CPUs for %d workers", len(worker), workers)
	}
	free := slices.DeleteFunc(slices.Clone(allowed), func(cpu int) bool { return slices.Contains(worker, cpu) })
	switch testerWanted {
	case "none":
	case "":
		if len(free) >= threads && len(worker) > 0 {
			tester = free[:threads]
		} else if workersWanted == "" {
			worker, free = nil, nil
		}
	default:
		if tester, err = ParseCPUs(testerWanted); err != nil {
			return nil, nil, nil, err
		}
		if len(tester) != threads {
			return nil, nil, nil, fmt.Errorf("%d CPUs for the tester's %d thread(s)", len(tester), threads)
		}
	}
	switch controlWanted {
	case "none":
	case "":
		if len(worker) > 0 {
			control = free
		}
	default:
		control, err = ParseCPUs(controlWanted)
	}
	return worker, tester, control, err
}

// allowedCPUs are those in this process's affinity mask.
func allowedCPUs() []int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			list, err := ParseCPUs(strings.TrimSpace(text))
			if err == nil {
				return list
			}
		}
	}
	return nil
}
