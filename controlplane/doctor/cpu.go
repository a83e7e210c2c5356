// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"isthmus/controlplane/cpuset"
)

func workerCPUs(r *report) {
	online := cpuset.Read(r.text("sys/devices/system/cpu/online"))
	for _, cpu := range r.pinned() {
		if len(online) > 0 && !online[cpu] {
			r.say(Fault, cpuName(cpu), "not online", "isthmus-dp does not start with a worker there",
				fmt.Sprintf("echo 1 > /sys/devices/system/cpu/cpu%d/online, or change engine.cpus",
					cpu))
		}
	}
	if len(online) > 0 && r.Workers >= len(online) {
		r.say(Costs, "", fmt.Sprintf("%d workers on %d CPUs", r.Workers, len(online)),
			"control plane and kernel take time from the packets: pauses of milliseconds, loss at load",
			"engine.workers: fewer, or engine.idle_sleep: true")
	}
	if r.Workers == 0 {
		r.say(Note, "", "no configuration: CPUs of workers and ports are not looked at", "",
			"isthmus doctor -c FILE")
		return
	}
	if len(r.pinned()) == 0 {
		r.say(Costs, "", "no worker is pinned", "the kernel moves workers: cold caches and pauses",
			"engine.cpus: one CPU for each worker")
		return
	}
	if r.Placed != "" {
		r.good("", "%s", r.Placed)
		return
	}
	r.good("", "workers on CPU %s", joined(r.pinned()))
}

func isolation(r *report) {
	isolated := cpuset.Read(r.text("sys/devices/system/cpu/isolated"))
	nohz := cpuset.Read(r.text("sys/devices/system/cpu/nohz_full"))
	var open, ticking []int
	for _, cpu := range r.pinned() {
		if !isolated[cpu] {
			open = append(open, cpu)
		}
		if !nohz[cpu] {
			ticking = append(ticking, cpu)
		}
	}
	all := joined(r.pinned())
	command := fmt.Sprintf("kernel command line: isolcpus=%s nohz_full=%s rcu_nocbs=%s", all, all, all)
	switch {
	case len(open) > 0:
		r.say(Costs, "CPU "+joined(open), "not isolated",
			"whatever else the kernel runs there stops a worker for up to milliseconds", command)
	case len(ticking) > 0:
		r.say(Costs, "CPU "+joined(ticking), "isolated, with the timer tick",
			"250 to 1,000 interrupts a second, some microseconds each", command)
	case all != "":
		r.good("CPU "+all, "isolated, without timer tick")
	}
}

// siblings: two hardware threads of one core share its execution units.
func siblings(r *report) {
	said := map[string]bool{}
	for _, cpu := range r.pinned() {
		text := r.text(cpuPath(cpu, "topology/thread_siblings_list"))
		threads := cpuset.Read(text)
		if len(threads) < 2 || said[text] {
			continue
		}
		said[text] = true
		var workers []int
		for _, other := range r.pinned() {
			if threads[other] {
				workers = append(workers, other)
			}
		}
		if len(workers) > 1 {
			r.say(Costs, "CPU "+joined(workers), "threads of one core",
				"the two workers do the work of about 1.3",
				"engine.cpus: one thread of each core (lscpu -p=cpu,core)")
		} else {
			r.say(Note, cpuName(cpu), "shares its core with CPU "+text,
				"what runs on the other thread slows the worker", "")
		}
	}
}

// A line of /proc/PID/stat (proc(5)): the fields behind the name, which stands in brackets and may hold anything.
func statFields(line string) (name string, fields []string) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return "", nil
	}
	return line[open+1 : end], strings.Fields(line[end+1:])
}

const (
	statParent    = 1 // behind the name: ppid
	statUser      = 11
	statSystem    = 12
	statProcessor = 36
)

func otherPrograms(r *report) {
	cpus := r.pinned()
	type program struct {
		name  string
		ticks int
	}
	on := map[int][]program{}
	for _, pid := range r.folder("proc") {
		if _, err := strconv.Atoi(pid); err != nil {
			continue
		}
		name, f := statFields(r.text("proc", pid, "stat"))
		kernel := pid == "2" || (len(f) > statParent && f[statParent] == "2") // kthreadd and its threads
		if len(f) <= statProcessor || kernel || strings.HasPrefix(name, "isthmus") {
			continue
		}
		cpu, _ := strconv.Atoi(f[statProcessor])
		user, _ := strconv.Atoi(f[statUser])
		system, _ := strconv.Atoi(f[statSystem])
		if slices.Contains(cpus, cpu) && user+system > 0 {
			on[cpu] = append(on[cpu], program{name, user + system})
		}
	}
	for _, cpu := range cpus {
		list := on[cpu]
		if len(list) == 0 {
			continue
		}
		slices.SortFunc(list, func(a, b program) int { return b.ticks - a.ticks })
		var names []string
		for _, p := range list[:min(3, len(list))] {
			names = append(names, p.name)
		}
		r.say(Costs, cpuName(cpu),
			fmt.Sprintf("%d programs ran there last: %s", len(list), strings.Join(names, ", ")),
			"each of their turns stops the worker",
			fmt.Sprintf("isolate the CPU; systemd: CPUAffinity= without %d", cpu))
	}
}

func interrupts(r *report) {
	on := map[int][]string{}
	for _, irq := range r.folder("proc/irq") {
		where := cpuset.Read(r.text("proc/irq", irq, "effective_affinity_list"))
		if len(where) > 1 { // of an unused IRQ: all CPUs
			continue
		}
		for _, cpu := range r.pinned() {
			if where[cpu] && len(r.folder("proc/irq", irq)) > 0 && hasHandler(r, irq) {
				on[cpu] = append(on[cpu], irq)
			}
		}
	}
	for _, cpu := range r.pinned() {
		if n := len(on[cpu]); n > 0 {
			some := strings.Join(on[cpu][:min(4, n)], ", ")
			r.say(Costs, cpuName(cpu), fmt.Sprintf("%d device interrupts come here (%s)", n, some),
				"each stops the worker for microseconds",
				fmt.Sprintf("echo CPUS > /proc/irq/%s/smp_affinity_list; stop irqbalance", on[cpu][0]))
		}
	}
}

// An IRQ that a driver took has a folder by the driver's name.
func hasHandler(r *report, irq string) bool {
	for _, name := range r.folder("proc/irq", irq) {
		if r.isFolder("proc/irq", irq, name) {
			return true
		}
	}
	return false
}

// steal: on a virtual machine, the part of time in which the host ran something else (proc(5), /proc/stat).
func steal(r *report) {
	for line := range strings.Lines(r.text("proc/stat")) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.HasPrefix(f[0], "cpu") || f[0] == "cpu" {
			continue
		}
		cpu, _ := strconv.Atoi(f[0][3:])
		stolen, err := strconv.ParseFloat(f[8], 64)
		if err != nil || !slices.Contains(r.pinned(), cpu) {
			continue
		}
		sum := 0.0
		for _, v := range f[1:9] {
			n, _ := strconv.ParseFloat(v, 64)
			sum += n
		}
		if sum > 0 && stolen/sum > 0.001 {
			r.say(Costs, cpuName(cpu),
				fmt.Sprintf("the host took %.1f %% of its time since boot", 100*stolen/sum),
				"pauses of milliseconds, loss at load",
				"on the host: pin the virtual CPUs, one to a core")
		}
	}
}

const slowExit = 10 // microseconds, exit latency of a C-state

func cStates(r *report) {
	var deep []int
	worst, name := 0, ""
	for _, cpu := range r.pinned() {
		found := false
		for _, state := range r.folder(cpuPath(cpu, "cpuidle")) {
			latency, _ := r.number(cpuPath(cpu, "cpuidle"), state, "latency")
			if latency > slowExit && r.text(cpuPath(cpu, "cpuidle"), state, "disable") == "0" {
				found = true
				if latency > worst {
					worst, name = latency, r.text(cpuPath(cpu, "cpuidle"), state, "name")
				}
			}
		}
		if found {
			deep = append(deep, cpu)
		}
	}
	if len(deep) > 0 {
		r.say(Costs, "CPU "+joined(deep), fmt.Sprintf("may go as deep as %s, %d µs to wake", name, worst),
			"the first packet after a pause is late by that, with idle_sleep",
			fmt.Sprintf("cpupower -c %s idle-set -D %d; for good: %s", joined(deep), slowExit,
				"processor.max_cstate=1 intel_idle.max_cstate=0"))
	}
}

func governor(r *report) {
	slow := map[string][]int{}
	for _, cpu := range r.pinned() {
		if g := r.text(cpuPath(cpu, "cpufreq/scaling_governor")); g != "" && g != "performance" {
			slow[g] = append(slow[g], cpu)
		}
	}
	for g, cpus := range slow {
		r.say(Costs, "CPU "+joined(cpus), "governor "+g,
			"the clock follows the load late: fewer packets per second at the begin of a burst",
			fmt.Sprintf("cpupower -c %s frequency-set -g performance", joined(cpus)))
	}
}

func turbo(r *report) {
	intel := r.text("sys/devices/system/cpu/intel_pstate/no_turbo")
	boost := r.text("sys/devices/system/cpu/cpufreq/boost")
	switch {
	case intel == "1":
		r.say(Note, "", "turbo is off",
			"a busy core could have a faster clock; comparisons are steadier without",
			"echo 0 > /sys/devices/system/cpu/intel_pstate/no_turbo")
	case boost == "0":
		r.say(Note, "", "turbo is off",
			"a busy core could have a faster clock; comparisons are steadier without",
			"echo 1 > /sys/devices/system/cpu/cpufreq/boost")
	case intel == "0" || boost == "1":
		r.good("", "turbo is on; ticks of the TSC are not clocks of the core")
	}
}

func frequency(r *report) {
	for _, cpu := range r.pinned() {
		limit, limited := r.number(cpuPath(cpu, "cpufreq/scaling_max_freq"))
		most, known := r.number(cpuPath(cpu, "cpufreq/cpuinfo_max_freq"))
		if limited && known && limit < most {
			r.say(Costs, cpuName(cpu), fmt.Sprintf("limited to %d of %d MHz", limit/1000, most/1000),
				fmt.Sprintf("%d %% of the speed", 100-100*limit/most),
				fmt.Sprintf("cpupower -c %d frequency-set -u %dMHz", cpu, most/1000))
		}
	}
}

func clockSource(r *report) {
	source := r.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
	flags := r.cpuFlags()
	if len(flags) > 0 && !flags["constant_tsc"] {
		r.say(Fault, "", "the TSC's rate follows the clock (no constant_tsc)",
			"meters and schedulers measure wrong rates", "")
	}
	switch source {
	case "":
	case "tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter":
		r.good("", "%s", source)
	default:
		r.say(Costs, "", source,
			"each look at the clock is a call of the kernel or a device: microseconds",
			"clocksource=tsc on the kernel's command line; why not: dmesg | grep -i tsc")
	}
}

func (r *report) cpuFlags() map[string]bool {
	flags := map[string]bool{}
	for line := range strings.Lines(r.text("proc/cpuinfo")) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "flags" {
			for _, f := range strings.Fields(value) {
				flags[f] = true
			}
			return flags
		}
	}
	return flags
}

// mitigations cost calls of the kernel, so they matter to ports whose driver calls it for packets.
func mitigations(r *report) {
	active := 0
	for _, name := range r.folder("sys/devices/system/cpu/vulnerabilities") {
		if strings.HasPrefix(r.text("sys/devices/system/cpu/vulnerabilities", name), "Mitigation") {
			active++
		}
	}
	var by []string
	for _, p := range r.Ports {
		if throughKernel(p.Driver) {
			by = append(by, string(p.Name))
		}
	}
	switch {
	case active == 0:
	case len(by) == 0:
		r.good("", "%d active; no port calls the kernel for packets", active)
	default:
		r.say(Note, strings.Join(by, ", "), fmt.Sprintf("%d active", active),
			"each call of the kernel for packets of these ports is longer",
			"mitigations=off on the kernel's command line, where every program on the machine is trusted")
	}
}

func throughKernel(driver string) bool {
	return driver == "net_af_packet" || driver == "net_af_xdp" || driver == "net_tap" || driver == "net_pcap"
}

func watchdog(r *report) {
	if r.text("proc/sys/kernel/nmi_watchdog") == "1" {
		r.say(Note, "", "the NMI watchdog is on",
			"an interrupt every few seconds on each CPU, and one performance counter",
			"sysctl kernel.nmi_watchdog=0")
	}
}
