// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"isthmus/lab/report"
)

// machine describes where we run. What cannot be read stays empty.
func machine() report.Machine {
	info, memory := pairs("/proc/cpuinfo", ":"), pairs("/proc/meminfo", ":")
	m := report.Machine{
		CPU: info["model name"], CPUs: runtime.NumCPU(), Kernel: content("/proc/sys/kernel/osrelease"),
		System: strings.Trim(pairs("/etc/os-release", "=")["PRETTY_NAME"], `"`),
	}
	m.Host, _ = os.Hostname()
	if strings.Contains(" "+info["flags"]+" ", " hypervisor ") {
		m.Hypervisor = strings.TrimSpace("a virtual machine " + content("/sys/class/dmi/id/sys_vendor"))
	}
	m.MemoryGB = float64(kilobytes(memory["MemTotal"])) / (1 << 20)
	if n := memory["HugePages_Total"]; n != "" && n != "0" {
		m.HugePages = fmt.Sprintf("%s of %d MB", n, kilobytes(memory["Hugepagesize"])>>10)
	} else {
		m.HugePages = "none reserved"
	}
	return m
}

func content(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// pairs reads lines of a name and a value; the first of equal names counts.
func pairs(file, between string) map[string]string {
	list := map[string]string{}
	f, err := os.Open(file)
	if err != nil {
		return list
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		name, value, ok := strings.Cut(in.Text(), between)
		if name = strings.TrimSpace(name); ok && list[name] == "" {
			list[name] = strings.TrimSpace(value)
		}
	}
	return list
}

// kilobytes reads "16384 kB".
func kilobytes(s string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSuffix(s, " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
