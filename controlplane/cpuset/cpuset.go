// SPDX-License-Identifier: Apache-2.0

// Package cpuset chooses CPUs for workers out of those that this process may use (engine.cpus: auto). It reads /sys.
package cpuset

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine is where CPUs are looked at.
type Machine struct {
	Root    string                // folder in which sys lies
	Allowed func() ([]int, error) // CPUs that the process may use, ascending
}

// Live is this machine, with the CPUs of this process.
func Live() *Machine { return &Machine{"/", allowed} }

// allowed are the CPUs of the process' first thread (sched_getaffinity), which a container's cpuset, systemd's
// CPUAffinity= and taskset give it.
func allowed() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return nil, fmt.Errorf("the CPUs of this process: %w", err)
	}
	var cpus []int
	for cpu, left := 0, set.Count(); left > 0; cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
			left--
		}
	}
	return cpus, nil
}

// Online are all CPUs of the machine: of a recorded one, whose processes are not there.
func (m *Machine) Online() ([]int, error) {
	return keys(Read(m.text("sys/devices/system/cpu/online"))), nil
}

// Device is what a port opens: the configuration's driver and device.
type Device struct{ Driver, Name string }

// Choice is which CPUs workers have.
type Choice struct {
	Workers []int  // one each, ascending
	Why     string // for people: out of which, and on which node
}

// Choose gives each worker a CPU. Those of the devices' NUMA nodes are first. Whole cores come before second threads,
// and the first CPU is last, because kernels and control planes run there. Where there are two or more, one is left to
// the control plane. workers 0: as many as there are CPUs for, at most `most`.
func (m *Machine) Choose(devices []Device, workers, most int) (Choice, error) {
	all, err := m.Allowed()
	if err != nil {
		return Choice{}, err
	}
	if len(all) == 0 {
		return Choice{}, fmt.Errorf("this process has no CPU")
	}
	room, of := max(len(all)-1, 1), Write(all)
	switch {
	case workers == 0:
		workers = min(room, most)
	case workers > room && len(all) == 1:
		return Choice{}, fmt.Errorf("%d workers, and this process may use CPU %s alone: leave out engine.workers, or "+
			"give it more CPUs", workers, of)
	case workers > room:
		return Choice{}, fmt.Errorf("%d workers, and this process may use CPUs %s, of which one is left to the "+
			"control plane: leave out engine.workers, give it more CPUs, or list the CPUs", workers, of)
	}
	near := m.nodesOf(devices)
	type rank struct{ far, thread, first, cpu int }
	ranks := make([]rank, len(all))
	for i, cpu := range all {
		r := rank{cpu: cpu}
		if len(near) > 0 && !near[m.NodeOf(cpu)] {
			r.far = 1
		}
		for other := range Read(m.text(cpuFile(cpu, "topology/thread_siblings_list"))) {
			if other < cpu && slices.Contains(all, other) {
				r.thread = 1
			}
		}
		if i == 0 {
			r.first = 1
		}
		ranks[i] = r
	}
	slices.SortFunc(ranks, func(a, b rank) int {
		return cmp.Or(a.far-b.far, a.thread-b.thread, a.first-b.first, a.cpu-b.cpu)
	})
	c := Choice{Why: "of " + of}
	far := false
	for _, r := range ranks[:workers] {
		c.Workers, far = append(c.Workers, r.cpu), far || r.far > 0
	}
	slices.Sort(c.Workers)
	if len(near) > 0 {
		c.Why += ", the ports are on NUMA node " + Write(keys(near))
		if far {
			c.Why += ", which has too few of them"
		}
	}
	return c, nil
}

// nodesOf are the NUMA nodes of devices that have one.
func (m *Machine) nodesOf(devices []Device) map[int]bool {
	nodes := map[int]bool{}
	for _, d := range devices {
		folder := ""
		switch d.Driver {
		case "pci":
			folder = "sys/bus/pci/devices/" + d.Name
		case "net_af_packet", "net_af_xdp":
			folder = "sys/class/net/" + d.Name + "/device"
		default:
			continue
		}
		if node, err := strconv.Atoi(m.text(folder + "/numa_node")); err == nil && node >= 0 {
			nodes[node] = true
		}
	}
	return nodes
}

// NodeOf is the NUMA node of a CPU; -1: not known.
func (m *Machine) NodeOf(cpu int) int {
	entries, _ := os.ReadDir(filepath.Join(m.Root, cpuFile(cpu, "")))
	for _, e := range entries {
		if n, ok := strings.CutPrefix(e.Name(), "node"); ok {
			if node, err := strconv.Atoi(n); err == nil {
				return node
			}
		}
	}
	return -1
}

func cpuFile(cpu int, name string) string {
	return fmt.Sprintf("sys/devices/system/cpu/cpu%d/%s", cpu, name)
}

func (m *Machine) text(name string) string {
	data, err := os.ReadFile(filepath.Join(m.Root, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func keys(set map[int]bool) (list []int) {
	for n := range set {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// Read takes a list of the kernel's form apart: "0,2-5".
func Read(text string) map[int]bool {
	set := map[int]bool{}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(last); err != nil || to-from > 1<<16 {
				continue
			}
		}
		for ; from <= to; from++ {
			set[from] = true
		}
	}
	return set
}

// Write is the kernel's form of an ascending list.
func Write(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		part := strconv.Itoa(cpus[i])
		if j > i {
			part += "-" + strconv.Itoa(cpus[j])
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, ",")
}
