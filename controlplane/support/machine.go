// SPDX-License-Identifier: Apache-2.0

package support

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

const tailSize = 2 << 20 // bytes of a log's end

// File is a part that copies the beginning of a file.
func File(name, path string) Part {
	return Part{name, func(context.Context) ([]byte, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, partSize))
	}}
}

// Tail is a part that copies the end of a log file, without secrets and names.
func (n *Names) Tail(name, path string) Part {
	return Part{name, func(context.Context) ([]byte, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is no file", path)
		}
		data, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-tailSize), tailSize))
		return n.Text(data), err
	}}
}

// Command is a part that keeps what a program prints, without secrets and names.
func (n *Names) Command(name string, words ...string) Part {
	return Part{name, func(ctx context.Context) ([]byte, error) {
		var out, faults bounded
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Stdout, cmd.Stderr = &out, &faults
		err := cmd.Run()
		if err != nil && faults.Len() > 0 {
			err = fmt.Errorf("%s: %w: %s", words[0], err, bytes.TrimSpace(faults.Bytes()))
		}
		if err == nil && out.Len() == 0 {
			err = errors.New("it printed nothing")
		}
		return n.Text(out.Bytes()), err
	}}
}

// bounded keeps the first bytes that are written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := partSize - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// Machine is the parts about this machine.
func (n *Names) Machine() []Part {
	var parts []Part
	for _, path := range []string{"/etc/os-release", "/proc/version", "/proc/cmdline", "/proc/cpuinfo",
		"/proc/meminfo", "/proc/interrupts", "/proc/loadavg", "/proc/pressure/cpu", "/proc/pressure/memory",
		"/proc/net/dev",
		"/proc/net/snmp", "/proc/sys/kernel/perf_event_paranoid"} {
		parts = append(parts, File("machine"+strings.ReplaceAll(path, "/proc/", "/"), path))
	}
	return append(parts,
		n.Command("machine/ip-link", "ip", "-s", "-d", "link"),
		n.Command("machine/ip-route", "ip", "route"),
		n.Command("machine/lspci", "lspci", "-nn"),
		n.Command("machine/df", "df", "-h"),
		n.Command("machine/libraries", "dpkg-query", "-W", "libdpdk*", "librte*", "linux-image-*"),
	)
}

// Process is the parts about a process of ours; pid 0: none.
func Process(name string, pid int) []Part {
	var parts []Part
	for _, file := range []string{"status", "limits", "cmdline", "sched", "numa_maps"} {
		part := File("process/"+name+"/"+file, fmt.Sprintf("/proc/%d/%s", pid, file))
		if pid == 0 {
			part.Get = func(context.Context) ([]byte, error) {
				return nil, errors.New("no such process is known")
			}
		}
		parts = append(parts, part)
	}
	return parts
}

// Journal is the end of a unit's log.
func (n *Names) Journal(unit string) Part {
	return n.Command("log/"+unit+".journal", "journalctl", "--unit", unit, "--lines", "5000", "--no-pager",
		"--quiet",
		"--output", "short-iso-precise")
}
