// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"isthmus/lab/tester"
)

// Links between tester and gateway, by name. synth is the one without a tester.
const (
	LinkSynth    = "synth"
	LinkMemif    = "memif"
	LinkShare    = "share"
	LinkVirtio   = "virtio"
	LinkAFPacket = "af_packet"
	LinkAFXDP    = "af_xdp"
)

// LinkNames are what --link takes.
var LinkNames = []string{LinkMemif, LinkShare, LinkVirtio, LinkSynth, LinkAFPacket, LinkAFXDP}

// memifRing is the size of a memif link's (and a share link's) rings, as large as many a network card's. On a virtual
// machine a CPU pauses for a millisecond now and then: a smaller ring loses packets in each pause.
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
	case LinkVirtio:
		socket := filepath.Join(dir, name+".sock")
		return &wire{
			gateway: fmt.Sprintf("driver: net_vhost, device: '%s', promiscuous: true", socket),
			socket:  socket,
			far:     tester.Port{Driver: "net_virtio_user", Device: socket},
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

// vethWire makes a pair of veth interfaces.
func vethWire(ctx context.Context, driver, name string) (*wire, error) {
	v := &tester.Veth{Near: "isb-" + name, Far: "ist-" + name, MTU: tester.VethMTU}
	gateway := fmt.Sprintf("driver: %s, device: %s", driver, v.Near)
	if driver == "net_af_xdp" {
		v.MTU = tester.XDPMTU
		gateway += ", args: '" + tester.XDPNear + "'"
	}
	if err := v.Make(ctx); err != nil {
		return nil, err
	}
	return &wire{gateway: gateway, far: tester.Port{Driver: driver, Device: v.Far}, remove: v.Remove}, nil
}
