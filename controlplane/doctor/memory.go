// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"isthmus/controlplane/cpuset"
)

const enoughPages = 128 // of 2 MB: what engine.huge_pages auto asks for (docs/running.md)

// meminfo is a number of /proc/meminfo.
func (r *report) meminfo(key string) (int, bool) {
	for line := range strings.Lines(r.text("proc/meminfo")) {
		name, value, _ := strings.Cut(line, ":")
		if f := strings.Fields(value); name == key && len(f) > 0 {
			n, err := strconv.Atoi(f[0])
			return n, err == nil
		}
	}
	return 0, false
}

func hugePages(r *report) {
	free, known := r.meminfo("HugePages_Free")
	size, _ := r.meminfo("Hugepagesize")
	if !known || r.HugePages == "off" {
		return
	}
	if free*max(size, 1) >= enoughPages*2048 {
		r.good("", "%d pages of %d KB free", free, size)
		return
	}
	state := Costs
	cost := "a fifth more ticks a packet with 1,000 subscribers, more with more; share ports cannot lend buffers"
	if r.HugePages == "on" {
		state, cost = Fault, "isthmus-dp does not start with engine.huge_pages: on"
	}
	r.say(state, "", fmt.Sprintf("%d pages of %d KB free", free, size), cost,
		"echo 1024 > /proc/sys/vm/nr_hugepages; for good: hugepages=1024 on the kernel's command line")
}

// nodeOf is the NUMA node of a CPU; -1: not known.
func (r *report) nodeOf(cpu int) int {
	for _, name := range r.folder(cpuPath(cpu, "")) {
		if n, ok := strings.CutPrefix(name, "node"); ok {
			if node, err := strconv.Atoi(n); err == nil {
				return node
			}
		}
	}
	return -1
}

func numa(r *report) {
	nodes := cpuset.Read(r.text("sys/devices/system/node/online"))
	if len(nodes) < 2 {
		return
	}
	used := map[int]bool{}
	for _, cpu := range r.pinned() {
		if n := r.nodeOf(cpu); n >= 0 {
			used[n] = true
		}
	}
	if len(used) > 1 {
		r.say(Costs, "", fmt.Sprintf("workers on %d NUMA nodes", len(used)),
			"look-ups in the other socket's memory take about twice as long",
			"engine.cpus: those of one node (lscpu -p=cpu,node); one data plane for each node")
	}
	for node := range used {
		pages, ok := r.number("sys/devices/system/node", fmt.Sprintf("node%d", node),
			"hugepages/hugepages-2048kB/free_hugepages")
		if ok && pages < enoughPages && r.HugePages != "off" {
			r.say(Costs, fmt.Sprintf("node %d", node), fmt.Sprintf("%d huge pages of 2 MB free", pages),
				"tables lie on another node, or in small pages",
				fmt.Sprintf("echo 1024 > /sys/devices/system/node/node%d/hugepages/"+
					"hugepages-2048kB/nr_hugepages", node))
		}
	}
	for _, p := range r.devices() {
		if node, ok := r.number(p.folder, "numa_node"); ok && node >= 0 && len(used) > 0 && !used[node] {
			r.say(Costs, p.port, fmt.Sprintf("on NUMA node %d, the workers are not", node),
				"each packet crosses the link between the sockets, twice",
				fmt.Sprintf("engine.cpus: CPUs of node %d (lscpu -p=cpu,node)", node))
		}
	}
}
