// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"

	"isthmus/lab/tester"
)

// Link is one end of a memif link that the device under test serves: its socket and the identifier on it.
type Link struct {
	Socket string
	ID     int
}

// DUT is a device under test that already runs: a gateway of ours or any other program with two memif server ports.
// The tester connects to them as a client and moves packets without copying where huge pages allow it.
type DUT struct {
	Name   string          // for messages: "isthmus-dp", "dpdk-testpmd"
	Links  map[string]Link // by the name of the profile's port that connects to it; every port of the profile needs one
	Exited <-chan struct{} // closed when the device has ended; nil: not watched
	Words  func() string   // its last words, asked for after Exited was closed; may be nil
}

// MeasureLink connects the tester to a running device, runs the profile (a search, a fixed rate or steps, as its Run
// section says) and returns what the tester measured. The profile is not changed: driver, device and device arguments of
// its ports are replaced by the device's links in a copy, as are CPUs and huge pages where opt gives them.
//
// A result is returned whenever the tester wrote one, also beside an error. Look at its Complete and Interrupted: when
// ctx ends, the run is interrupted, and what it measured by then comes back without an error. The error is not nil when
// the tester failed, when the run is not complete for another reason, or when the device ended (with its last words).
// Packets that were wrong, or lost above the goal, are no error here: Result.Status is 1 then.
//
// It starts one process and nothing else, and may be called again and again for the same device; calls for different
// devices may run at the same time when their CPUs differ.
func MeasureLink(ctx context.Context, dut DUT, profile *tester.Profile, opt tester.Options) (*tester.Result, error) {
	copied, err := dut.connect(profile)
	if err != nil {
		return nil, err
	}
	return RunAgainst(ctx, End{dut.Name, dut.Exited, dut.Words}, copied, opt)
}

// End is what is known of the process at the other end of the tester's links.
type End struct {
	Name   string
	Exited <-chan struct{} // as in DUT
	Words  func() string
}

// RunAgainst is MeasureLink for a profile whose ports are connected already, over whatever link.
func RunAgainst(ctx context.Context, end End, profile *tester.Profile, opt tester.Options) (*tester.Result, error) {
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-end.Exited: // never, for a nil channel
			cancel()
		case <-watched.Done():
		}
	}()
	r, err := tester.Run(watched, profile, opt)
	select {
	case <-end.Exited:
		words := ""
		if end.Words != nil {
			words = "\n" + end.Words()
		}
		return r, errors.Join(fmt.Errorf("%s ended while it was measured%s", end.Name, words), err)
	default:
		return r, err
	}
}

// connect returns the profile with its ports at the device's links.
func (d *DUT) connect(profile *tester.Profile) (*tester.Profile, error) {
	p := *profile
	p.Ports = append([]tester.Port(nil), profile.Ports...)
	for i := range p.Ports {
		link, ok := d.Links[p.Ports[i].Name]
		if !ok {
			return nil, fmt.Errorf("%s has no link for the tester's port %q", d.Name, p.Ports[i].Name)
		}
		p.Ports[i].Driver, p.Ports[i].Device, p.Ports[i].Args = "net_memif", link.Socket, fmt.Sprintf("id=%d", link.ID)
	}
	return &p, nil
}
