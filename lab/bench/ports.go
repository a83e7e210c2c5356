// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"isthmus/lab/tester"
)

// Links between tester and gateway, by name. synth is the one without a tester.
const (
	LinkSynth    = "synth"
	LinkMemif    = "memif"
	LinkShare    = "share"
	LinkAFPacket = "af_packet"
	LinkAFXDP    = "af_xdp"
)

// LinkNames are what --link takes.
var LinkNames = []string{LinkMemif, LinkShare, LinkSynth, LinkAFPacket, LinkAFXDP}

// memifRing is the size of a memif link's rings (and of a share link's), as large as many a network card's: on a
// virtual machine a CPU pauses for a millisecond now and then, and a smaller ring makes each of these pauses a loss.
const memifRing = 2048

// wire is one link: a port of the gateway, and the tester's port at its other end.
type wire struct {
	gateway string // driver and device of the gateway's port, as its configuration has them
	socket  string // memif, share: where the gateway listens
	far     tester.Port
	remove  func()
}

// makeWire makes the link and what it needs of the machine. The name is unique in this run, at most 6 bytes.
func makeWire(ctx context.Context, kind, dir, name string) (*wire, error) {
	switch kind {
	case LinkMemif:
		socket := filepath.Join(dir, name+".sock")
		return &wire{
			gateway: sharedPort(kind, socket, "server"),
			socket:  socket,
			far:     tester.Port{Driver: "net_memif", Device: socket, Args: "id=0", Descriptors: memifRing},
			remove:  func() {},
		}, nil
	case LinkShare:
		socket := filepath.Join(dir, name+".sock")
		return &wire{
			gateway: sharedPort(kind, socket, "server"),
			socket:  socket,
			far:     tester.Port{Driver: "share", Device: socket, Descriptors: memifRing},
			remove:  func() {},
		}, nil
	case LinkAFPacket, LinkAFXDP:
		return vethWire(ctx, "net_"+kind, name)
	}
	return nil, fmt.Errorf("no link %q; there are %s", kind, strings.Join(LinkNames, ", "))
}

// sharedPort is a port of a memif or share link in a gateway's configuration.
func sharedPort(kind, socket, role string) string {
	if kind == LinkShare {
		return fmt.Sprintf("driver: share, device: '%s', args: 'role=%s', queue_size: %d", socket, role, memifRing)
	}
	return fmt.Sprintf("driver: net_memif, device: '%s', args: 'id=0,role=%s'", socket, role)
}

// highIndex returns an interface number that is free and far from the kernel's own. net_af_packet makes the number of its fanout
// group from process and interface number (pid ^ index), so two processes on neighbouring interfaces may ask for the same
// group, which the kernel refuses.
func highIndex() int {
	index := 1 << 14
	if list, err := net.Interfaces(); err == nil {
		for _, i := range list {
			index = max(index, i.Index+1)
		}
	}
	return index
}

// vethWire makes a pair of veth interfaces, both ends silent and without an address.
func vethWire(ctx context.Context, driver, name string) (*wire, error) {
	near, far, mtu := "isb-"+name, "ist-"+name, "9200"
	if driver == "net_af_xdp" {
		mtu = "3000" // XDP frames lie in one page
	}
	steps := [][]string{
		{"ip", "link", "add", near, "index", strconv.Itoa(highIndex()), "type", "veth", "peer", "name", far},
		{"ip", "link", "set", near, "mtu", mtu, "addrgenmode", "none", "up"},
		{"ip", "link", "set", far, "mtu", mtu, "addrgenmode", "none", "up"},
	}
	remove := func() { exec.Command("ip", "link", "del", near).Run() }
	for i, step := range steps {
		if out, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput(); err != nil {
			if i > 0 {
				remove()
			}
			return nil, fmt.Errorf("%s: %w: %s", strings.Join(step, " "), err, strings.TrimSpace(string(out)))
		}
	}
	return &wire{
		gateway: fmt.Sprintf("driver: %s, device: %s", driver, near),
		far:     tester.Port{Driver: driver, Device: far},
		remove:  remove,
	}, nil
}
