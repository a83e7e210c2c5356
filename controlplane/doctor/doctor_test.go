// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus/controlplane/config"
	"isthmus/controlplane/testkit"
)

// recorded lays out a machine of testdata: lines "path TAB content", "\n" for a line's end, "-> TARGET" for a link.
// Programs' output is under run/.
func recorded(t *testing.T, name string) *Machine {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for line := range strings.Lines(string(data)) {
		file, content, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			continue
		}
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, isLink := strings.CutPrefix(content, "-> "); isLink {
			err = os.Symlink(target, file)
		} else {
			err = os.WriteFile(file, []byte(strings.ReplaceAll(content, `\n`, "\n")), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return &Machine{Root: root, HugePages: "auto", Run: func(args ...string) (string, error) {
		text, err := os.ReadFile(filepath.Join(root, "run", strings.Join(args, " ")))
		if err != nil {
			return "", errors.New("not recorded")
		}
		return string(text), nil
	}}
}

// said are the findings as "state check, subject: found", without good ones.
func said(findings []Finding) []string {
	var lines []string
	for _, f := range findings {
		if f.State != Good {
			lines = append(lines, string(f.State)+" "+f.Check+", "+f.Subject+": "+f.Found)
		}
	}
	return lines
}

func check(t *testing.T, m *Machine, want ...string) {
	t.Helper()
	findings := Look(m)
	if got := said(findings); !slices.Equal(got, want) {
		t.Errorf("found\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	for _, f := range findings {
		if (f.State == Costs || f.State == Fault) && f.Cost == "" {
			t.Errorf("%s: no cost", f.Check)
		}
	}
}

func TestTwoSockets(t *testing.T) {
	m := recorded(t, "two-sockets.txt")
	m.Workers, m.CPUs = 2, []int{2, 3}
	m.Ports = []config.Port{{Name: "n3", Driver: "pci", Device: "0000:3b:00.0"},
		{Name: "n6", Driver: "pci", Device: "0000:3b:00.1"},
		{Name: "n9", Driver: "pci", Device: "0000:5e:00.0"}}
	check(t, m,
		"costs isolation, CPU 2,3: not isolated",
		"costs siblings, CPU 2,3: threads of one core",
		"costs other programs, CPU 2: 2 programs ran there last: backup, my (odd) name",
		"costs interrupts, CPU 3: 1 device interrupts come here (42)",
		"costs c-states, CPU 2: may go as deep as C6, 133 µs to wake",
		"costs governor, CPU 2,3: governor powersave",
		"costs frequency, CPU 2: limited to 2000 of 4000 MHz",
		"note watchdog, : the NMI watchdog is on",
		"costs huge pages, : 0 pages of 2048 KB free",
		"costs numa, node 0: 0 huge pages of 2 MB free",
		"costs numa, n3: on NUMA node 1, the workers are not",
		"costs iommu, : the IOMMU translates for the kernel's devices, too",
		"fault driver, n6: 0000:3b:00.1: driver ice",
		"fault driver, n9: no device 0000:5e:00.0",
		"costs pcie, n3: PCIe at 126 of 252 Gb/s (x8 of x16)")
	if Worst(Look(m)) != Fault {
		t.Error("a port that cannot be opened is no fault")
	}
}

func TestTuned(t *testing.T) {
	m := recorded(t, "tuned.txt")
	m.Workers, m.CPUs = 2, []int{2, 3}
	m.Ports = []config.Port{{Name: "n3", Driver: "pci", Device: "0000:3b:00.0"}}
	check(t, m)
	if w := Worst(Look(m)); w != Good {
		t.Errorf("worst is %s", w)
	}
	m.Placed = "workers on CPU 2-3 (auto: of 1-3)"
	testkit.Equal(t, Look(m)[0].Found, m.Placed, "what auto chose")
	m.CPUs = []int{2, 7}
	if Worst(Look(m)) != Fault {
		t.Error("a worker on a CPU that is not there is no fault")
	}
}

func TestVirtualMachine(t *testing.T) {
	m := recorded(t, "virtual.txt")
	m.Workers, m.CPUs, m.HugePages = 2, []int{1, -1}, "on"
	m.Ports = []config.Port{{Name: "access", Driver: "net_af_xdp", Device: "ens5"},
		{Name: "core", Driver: "net_af_packet", Device: "eth0"},
		{Name: "gone", Driver: "net_af_packet", Device: "eth7"}}
	check(t, m,
		"costs cpus, : 2 workers on 2 CPUs",
		"costs isolation, CPU 1: not isolated",
		"costs steal, CPU 1: the host took 4.0 % of its time since boot",
		"fault clock source, : the TSC's rate follows the clock (no constant_tsc)",
		"costs clock source, : acpi_pm",
		"note mitigations, access, core, gone: 1 active",
		"fault huge pages, : 0 pages of 2048 KB free",
		"fault driver, gone: no interface eth7",
		"note firmware, access: ens5: 4.2",
		"costs pcie, access: PCIe carries 32 Gb/s, the link 40",
		"costs rings, access: 512 receive descriptors of 8192",
		"costs queues, access: 1 queues for 2 workers",
		"costs offloads, access: generic-receive-offload")
}

// Without files there are no findings, whatever the ports.
func TestEmptyMachine(t *testing.T) {
	bond := config.Bond{Members: []config.Member{{Driver: "pci", Device: "0000:00:01.0"}}}
	m := &Machine{Root: t.TempDir(), HugePages: "auto", Workers: 1, CPUs: []int{0},
		Ports: []config.Port{{Name: "a", Driver: "synth"}, {Name: "b", Driver: "net_bond", Bond: bond}}}
	check(t, m,
		"costs isolation, CPU 0: not isolated",
		"fault driver, b: no device 0000:00:01.0")
	m.Narrow = []config.Narrow{{Port: "a", MTU: 1500, Needs: 1544}}
	check(t, m,
		"costs isolation, CPU 0: not isolated",
		"fault driver, b: no device 0000:00:01.0",
		"costs mtu, a: mtu 1500, and it carries tunnels")
}
