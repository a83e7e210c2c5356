// SPDX-License-Identifier: Apache-2.0

// Package doctor examines a data plane's machine, and reports what costs packets or speed: the finding, its cost, and
// the command to change it. It reads /sys, /proc and ethtool's output, and changes nothing.
package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"isthmus/controlplane/config"
)

// State is how much a finding matters.
type State string

const (
	Good  State = "good"
	Note  State = "note"  // worth knowing, nothing to change
	Costs State = "costs" // works, with loss, latency or more cores
	Fault State = "fault" // the data plane will not start, or not with this port
)

// Finding is one check's result about one subject.
type Finding struct {
	Check   string `json:"check"`
	Subject string `json:"subject"` // CPU, port or file; empty: the machine
	State   State  `json:"state"`
	Found   string `json:"found"`
	Cost    string `json:"cost"`    // of leaving it so; empty: none
	Command string `json:"command"` // that changes it; may be empty
}

// Machine is what is looked at: the live one, or a recorded one.
type Machine struct {
	Root string                               // folder in which sys and proc lie
	Run  func(args ...string) (string, error) // runs a program for what no file has; may be nil

	Workers   int
	CPUs      []int  // of the workers, -1 if not pinned
	Placed    string // where engine.cpus auto put them; empty: the file names them
	HugePages string // engine.huge_pages
	Ports     []config.Port
	Narrow    []config.Narrow
}

// checks in the order in which they are shown.
var checks = []struct {
	name string
	look func(*report)
}{
	{"cpus", workerCPUs}, {"isolation", isolation}, {"siblings", siblings}, {"other programs", otherPrograms},
	{"interrupts", interrupts},
	{"steal", steal}, {"c-states", cStates}, {"governor", governor}, {"turbo", turbo}, {"frequency", frequency},
	{"clock source", clockSource}, {"mitigations", mitigations}, {"watchdog", watchdog}, {"huge pages", hugePages},
	{"numa", numa}, {"iommu", iommu}, {"driver", drivers}, {"firmware", firmware}, {"pcie", pcie}, {"rings", rings},
	{"queues", queues}, {"offloads", offloads}, {"mtu", mtus},
}

// report collects the findings of one machine.
type report struct {
	*Machine
	check    string
	findings []Finding
}

// Look runs every check. A check without a subject on this machine returns nothing.
func Look(m *Machine) []Finding {
	r := &report{Machine: m}
	for _, c := range checks {
		r.check = c.name
		c.look(r)
	}
	return r.findings
}

// Drivers runs the check of ports' devices alone.
func Drivers(m *Machine) []Finding {
	r := &report{Machine: m, check: "driver"}
	drivers(r)
	return r.findings
}

// Worst is the state of the finding that matters most.
func Worst(findings []Finding) State {
	worst, order := Good, map[State]int{Good: 0, Note: 1, Costs: 2, Fault: 3}
	for _, f := range findings {
		if order[f.State] > order[worst] {
			worst = f.State
		}
	}
	return worst
}

func (r *report) say(state State, subject, found, cost, command string) {
	r.findings = append(r.findings, Finding{r.check, subject, state, found, cost, command})
}

func (r *report) good(subject, format string, args ...any) {
	r.say(Good, subject, fmt.Sprintf(format, args...), "", "")
}

// ---- reading -------------------------------------------------------------------------------------------------

func (r *report) path(name []string) string {
	return filepath.Join(append([]string{r.Root}, name...)...)
}

// text is a file's content without the white space around it; empty when it cannot be read.
func (r *report) text(name ...string) string {
	data, err := os.ReadFile(r.path(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func (r *report) number(name ...string) (int, bool) {
	n, err := strconv.Atoi(r.text(name...))
	return n, err == nil
}

// link is the last part of a symbolic link's target; empty for other files.
func (r *report) link(name ...string) string {
	to, err := os.Readlink(r.path(name))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

func (r *report) folder(name ...string) []string {
	entries, _ := os.ReadDir(r.path(name))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (r *report) isFolder(name ...string) bool {
	info, err := os.Stat(r.path(name))
	return err == nil && info.IsDir()
}

func (r *report) exists(name ...string) bool {
	_, err := os.Stat(r.path(name))
	return err == nil
}

// parameter is the value of a word of the kernel's command line.
func (r *report) parameter(name string) (value string, given bool) {
	for _, word := range strings.Fields(r.text("proc/cmdline")) {
		if key, v, _ := strings.Cut(word, "="); key == name {
			value, given = v, true
		}
	}
	return
}

// pinned are the CPUs that workers are bound to.
func (r *report) pinned() []int {
	var cpus []int
	for _, c := range r.CPUs {
		if c >= 0 {
			cpus = append(cpus, c)
		}
	}
	return cpus
}

func cpuName(cpu int) string { return fmt.Sprintf("CPU %d", cpu) }

func cpuPath(cpu int, name string) string {
	return fmt.Sprintf("sys/devices/system/cpu/cpu%d/%s", cpu, name)
}

// joined writes numbers as the kernel's options take them: "2,3".
func joined(numbers []int) string {
	text := make([]string, len(numbers))
	for i, n := range numbers {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ",")
}
