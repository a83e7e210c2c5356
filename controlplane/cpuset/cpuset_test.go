// SPDX-License-Identifier: Apache-2.0

package cpuset

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"isthmus/controlplane/testkit"
)

// recorded is a machine of two sockets: CPUs 0 to 7 with their second threads 8 to 15, the even ones on node 0.
func recorded(t *testing.T, cpus string) *Machine {
	t.Helper()
	m := &Machine{Root: t.TempDir(), Allowed: func() ([]int, error) { return keys(Read(cpus)), nil }}
	put := func(name, text string) {
		path := filepath.Join(m.Root, name)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.Must(t, os.WriteFile(path, []byte(text+"\n"), 0o644))
	}
	for cpu := range 16 {
		put(cpuFile(cpu, fmt.Sprintf("node%d/x", cpu%2)), "")
		put(cpuFile(cpu, "topology/thread_siblings_list"), fmt.Sprintf("%d,%d", cpu%8, cpu%8+8))
	}
	put("sys/bus/pci/devices/0000:3b:02.0/numa_node", "1")
	put("sys/bus/pci/devices/0000:3b:02.1/numa_node", "-1")
	put("sys/class/net/eth0/device/numa_node", "0")
	return m
}

func TestChoose(t *testing.T) {
	far := []Device{{"pci", "0000:3b:02.0"}, {"synth", ""}, {"pci", "0000:ff:00.0"}}
	for _, r := range []struct {
		cpus    string
		devices []Device
		workers int
		want    string // CPUs, or of the error
		why     string
	}{
		{"5", nil, 0, "5", "of 5"},
		{"5", nil, 1, "5", "of 5"},
		{"5", nil, 2, "2 workers, and this process may use CPU 5 alone", ""},
		{"2-3", nil, 0, "3", "of 2-3"},
		{"2-3", nil, 2, "CPUs 2-3, of which one is left to the control plane", ""},
		{"0-3", nil, 0, "1-3", "of 0-3"},
		{"0-3", nil, 2, "1-2", "of 0-3"},
		{"0-7", far, 2, "1,3", "of 0-7, the ports are on NUMA node 1"},
		{"0-7", far, 4, "1,3,5,7", ""},
		{"0-7", far, 5, "1-3,5,7", "of 0-7, the ports are on NUMA node 1, which has too few of them"},
		{"0-7", []Device{{"net_af_packet", "eth0"}}, 4, "0,2,4,6", "NUMA node 0"}, // CPU 0 before another node
		{"0-7", []Device{{"net_af_packet", "eth0"}}, 3, "2,4,6", ""},
		{"0-7", append(far, Device{"net_af_xdp", "eth0"}), 3, "1-3", "NUMA node 0-1"},
		{"0-7", []Device{{"pci", "0000:3b:02.1"}}, 2, "1-2", "of 0-7"},
		{"0-15", far, 4, "1,3,5,7", ""}, // no second threads
		{"0-15", far, 5, "1,3,5,7,9", ""},
		{"1,3,9,11", far, 3, "1,3,9", ""},
		{"9,11", nil, 1, "11", "of 9,11"}, // whole cores, of which others have the first threads
		{"0-15", nil, 0, "0-11", ""},      // of 12
		{"", nil, 0, "no CPU", ""},
	} {
		c, err := recorded(t, r.cpus).Choose(r.devices, r.workers, 12)
		if err != nil {
			testkit.Refused(t, err, r.want)
			continue
		}
		testkit.Equal(t, Write(c.Workers), r.want, "of %s, %d workers", r.cpus, r.workers)
		testkit.ErrorIf(t, !strings.HasSuffix(c.Why, r.why), "%s: %q", r.cpus, c.Why)
	}
}

// The live machine: CPUs of this process, whatever they are.
func TestLive(t *testing.T) {
	var set unix.CPUSet
	testkit.Must(t, unix.SchedGetaffinity(os.Getpid(), &set))
	c, err := Live().Choose(nil, 0, 1)
	testkit.Must(t, err)
	testkit.ErrorIf(t, len(c.Workers) != 1 || !set.IsSet(c.Workers[0]), "%+v of %d CPUs", c, set.Count())
}

func TestLists(t *testing.T) {
	for text, want := range map[string]string{"": "", "3": "3", "0,2-5": "0,2-5", " 1 ,2,x,4-y": "1-2"} {
		testkit.Equal(t, Write(keys(Read(text))), want, "%q", text)
	}
}
