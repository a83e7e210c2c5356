// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"isthmus/lab/bench"
	"isthmus/lab/peer"
	"isthmus/lab/tester"
)

// gatewayPeer is our gateway, at the options' link, as one of those that are compared.
func gatewayPeer(opt bench.Options, name, link string, base *tester.Profile) *peer.Peer {
	note := ""
	if link == peer.LinkVeth {
		note = "polls with net_af_packet; the kernel's part of its receiving is done in the tester's time"
	}
	return &peer.Peer{
		Name: name, Note: note, Does: "the whole gateway: firewall, classification, policing, tunnel, routing, " +
			"scheduling",
		Link: link, Packets: peer.Same, Change: peer.Everything, Ours: true, Base: base,
		Version: func(context.Context, *peer.Setup) (string, error) { return opt.Version, nil },
		Start: func(ctx context.Context, _ peer.Setup) (*peer.Running, error) {
			g, err := bench.StartGateway(ctx, opt)
			if err != nil {
				return nil, err
			}
			return &peer.Running{Command: g.Command(), Ports: g.Ports(), Exited: g.Exited(), Words: g.Words,
				Stop: g.Stop}, nil
		},
	}
}

// comparePeers measures the gateway and the other programs in turn, with a profile's first load.
func comparePeers(ctx context.Context, opt bench.Options, rounds int, say func(format string, args ...any)) ([]peer.Row,
	error) {
	if opt.Link != bench.LinkMemif {
		return nil, errors.New("peers are compared over memif")
	}
	if len(opt.CPUs) == 0 {
		return nil, errors.New("peers are compared on one pinned CPU: give --cpus and --tester-cpus")
	}
	base, err := bench.TesterProfile(opt)
	if err != nil {
		return nil, err
	}
	setup := peer.Setup{
		CPU: opt.CPUs[0], Descriptors: 1024, NoHuge: opt.NoHuge, Flows: base.Streams[0].Flows,
		Ends: []peer.End{
			{Name: "access", MAC: bench.AccessMAC, FarMAC: bench.AccessFarMAC},
			{Name: "core", MAC: bench.CoreMAC, FarMAC: bench.CoreFarMAC},
		},
	}
	if len(opt.TesterCPUs) > 0 {
		setup.MainCPU = opt.TesterCPUs[0]
	}
	// All compared programs have the same CPUs for their other threads.
	restore, err := bench.Confine(opt.ControlCPUs)
	if err != nil {
		return nil, err
	}
	defer restore()
	measure := func(ctx context.Context, name string, r *peer.Running, p *tester.Profile) (*tester.Result, error) {
		end := bench.End{Name: name, Exited: r.Exited, Words: r.Words}
		return bench.RunAgainst(ctx, end, p, bench.TesterOptions{Engine: opt.TesterBin, NoHuge: opt.NoHuge})
	}
	veth := opt
	veth.Link = bench.LinkAFPacket
	vethBase, err := bench.TesterProfile(veth)
	if err != nil {
		return nil, err
	}
	list := append([]*peer.Peer{gatewayPeer(opt, "isthmus", peer.LinkMemif, base)}, peer.All()...)
	list = append(list, gatewayPeer(veth, "isthmus-veth", peer.LinkVeth, vethBase)) // for a fair ratio of Linux
	return peer.RunAll(ctx, list, peer.Options{Setup: setup, Repetitions: rounds, Base: base, Say: say}, measure)
}

// addPeers measures the peers after a profile and puts them into its result.
func addPeers(ctx context.Context, e *env, opt bench.Options, rounds int, r *bench.LinkResult) error {
	rows, err := comparePeers(ctx, opt, rounds,
		func(format string, args ...any) { fmt.Fprintf(e.Err, format+"\n", args...) })
	if len(rows) > 0 {
		r.Peers = rows
	}
	return err
}
