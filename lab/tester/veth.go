// SPDX-License-Identifier: Apache-2.0

package tester

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
)

// Veth is a pair of interfaces, both ends silent and without an address.
type Veth struct {
	Near, Far string // names; Far is the tester's
	MAC       string // of Near; empty: any
	MTU       int
}

// Make makes the pair in our namespace; it goes with Remove.
func (v *Veth) Make(ctx context.Context) error {
	steps := [][]string{
		{"ip", "link", "add", v.Near, "index", strconv.Itoa(highIndex()), "type", "veth", "peer", "name",
			v.Far},
	}
	if v.MAC != "" {
		steps = append(steps, []string{"ip", "link", "set", v.Near, "address", v.MAC})
	}
	for _, name := range []string{v.Near, v.Far} {
		mtu := strconv.Itoa(v.MTU)
		steps = append(steps, []string{"ip", "link", "set", name, "mtu", mtu, "addrgenmode", "none", "up"})
	}
	for i, step := range steps {
		if out, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput(); err != nil {
			if i > 0 {
				v.Remove()
			}
			return fmt.Errorf("%s: %w: %s", strings.Join(step, " "), err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// Remove takes the pair away: one end takes the other with it, and at once.
func (v *Veth) Remove() { exec.Command("ip", "link", "del", v.Far).Run() }

// MTUs of a pair. XDP frames lie in one page.
const (
	VethMTU = 9200
	XDPMTU  = 3000
)

// XDPNear are the arguments of net_af_xdp for a program that polls the near end of a pair. With the driver's preset
// both ends ask the kernel for each burst, and wait for each other.
const XDPNear = "busy_budget=0"

// highIndex returns an interface number that is free and far from the kernel's own. net_af_packet makes the number of
// its fanout group from process and interface number (pid ^ index). So two processes on neighbouring interfaces may ask
// for the same group, which the kernel refuses.
func highIndex() int {
	index := 1 << 14
	if list, err := net.Interfaces(); err == nil {
		for _, i := range list {
			index = max(index, i.Index+1)
		}
	}
	return index
}
