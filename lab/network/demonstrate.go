// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// Exec runs a command in a namespace of the lab, with the lab's name server, and returns its exit status.
func Exec(ctx context.Context, node string, argv []string, stdin, stdout, stderr *os.File) (int, error) {
	cmd := inNode(ctx, node, argv...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	err := cmd.Run()
	if exit, ok := err.(*exec.ExitError); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// inNode is a command in a namespace; at the end of ctx it is asked to end.
func inNode(ctx context.Context, node string, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", Prefix + node}, argv...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 3 * time.Second
	return cmd
}

// pings runs ping and returns how many it sent and got back, and its words.
func pings(
	ctx context.Context, node, target string, count int, interval time.Duration,
) (sent, received int, words string, err error) {
	cmd := inNode(ctx, node, "ping", "-n", "-c", strconv.Itoa(count), "-i", fmt.Sprint(interval.Seconds()), "-W", "5",
		target)
	out, failure := cmd.CombinedOutput()
	m := pingSummary.FindSubmatch(out)
	if m == nil {
		return 0, 0, string(out), fmt.Errorf("ping: %w: %s", failure, out)
	}
	sent, _ = strconv.Atoi(string(m[1]))
	received, _ = strconv.Atoi(string(m[2]))
	return sent, received, string(out), nil
}

var (
	pingSummary = regexp.MustCompile(`(\d+) packets transmitted, (\d+) (?:packets )?received`)
	pingTime    = regexp.MustCompile(`icmp_seq=1 .*time=([\d.]+) ms`)
)

// Demonstration shows what a running lab can do.
type Demonstration struct{ *Lab }

// Handover moves UE 1 there and back while it pings, and reports how many packets were lost.
func (d Demonstration) Handover(ctx context.Context) error {
	const count, interval = 200, 20 * time.Millisecond
	// Each radio node knows its neighbours before it counts: a packet to an unknown one waits, and few may.
	for range 2 {
		if _, err := d.Lab.Handover(ctx, 1); err != nil {
			return err
		}
		for _, target := range []string{serverIPv4.String(), serverIPv6.String()} {
			if _, _, _, err := pings(ctx, "ue", target, 3, interval); err != nil {
				return err
			}
		}
	}
	for _, target := range []string{serverIPv4.String(), serverIPv6.String()} {
		type result struct {
			sent, received int
			err            error
		}
		done := make(chan result, 1)
		go func() {
			sent, received, _, err := pings(ctx, "ue", target, count, interval)
			done <- result{sent, received, err}
		}()
		var moves []string
		for range 2 {
			if err := pause(ctx, count*interval/3); err != nil {
				return err
			}
			text, err := d.Lab.Handover(ctx, 1)
			if err != nil {
				return err
			}
			moves = append(moves, text)
		}
		r := <-done
		if r.err != nil {
			return r.err
		}
		d.say("handover: %s; %s; ping %s every %s: %d sent, %d lost", moves[0], moves[1], target, interval, r.sent,
			r.sent-r.received)
	}
	return nil
}

// Idle lets UE 1 become idle and pings it: the first packet waits until the UE was paged.
func (d Demonstration) Idle(ctx context.Context) error {
	for _, v6 := range []bool{false, true} {
		if _, err := d.Lab.Idle(ctx, 1); err != nil {
			return err
		}
		before := d.network.Pages.Load()
		target := ueTarget(v6).String()
		sent, received, words, err := pings(ctx, generations[d.opt.Generation].pdn, target, 5, 200*time.Millisecond)
		if err != nil {
			return err
		}
		first := "lost"
		if m := pingTime.FindStringSubmatch(words); m != nil {
			first = m[1] + " ms"
		}
		d.say("idle: UE 1 released; ping %s from the network: paged %d times, %d sent, %d lost, the first took %s",
			target,
			d.network.Pages.Load()-before, sent, sent-received, first)
	}
	return nil
}

// ueTarget is UE 1's address.
func ueTarget(v6 bool) netip.Addr {
	a := ueAddresses(1)
	if v6 {
		return host(a.IPv6)
	}
	return a.IPv4
}
