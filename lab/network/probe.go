// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// probe sends a numbered datagram to an echo server each millisecond and counts the answers.
type probe struct {
	name string
	conn *net.UDPConn
	done chan struct{}

	mu          sync.Mutex
	sent        uint64
	answers     uint64 // since the start
	first, upTo uint64 // numbers of the datagrams of a measurement; upTo 0: still running
	received    uint64 // of them
	last        time.Time
	longest     time.Duration // between two answers
}

const (
	probePeriod = time.Millisecond
	echoPort    = 7
)

// serveEcho answers datagrams at a node (RFC 862).
func (l *Lab) serveEcho(node string) error {
	return inside(node, func() error {
		conn, err := net.ListenUDP("udp", &net.UDPAddr{Port: echoPort})
		if err != nil {
			return err
		}
		l.closers = append(l.closers, conn)
		patient(conn)
		go func() {
			b := make([]byte, largest)
			for {
				n, from, err := conn.ReadFromUDPAddrPort(b)
				if err != nil {
					return
				}
				conn.WriteToUDPAddrPort(b[:n], from)
			}
		}()
		return nil
	})
}

// startProbes sends from the data network to a home and to a UE.
func (d Demonstration) startProbes() ([]*probe, error) {
	var list []*probe
	for _, of := range []struct {
		name   string
		target netip.Addr
	}{{"wireline", homeOf(0).IPv4}, {"mobile", ueAddresses(1).IPv4}} {
		p := &probe{name: of.name, done: make(chan struct{}), last: time.Now()}
		err := inside(generations[d.opt.Generation].pdn, func() error {
			var err error
			to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(of.target, echoPort))
			p.conn, err = net.DialUDP("udp", nil, to)
			return err
		})
		if err != nil {
			stopProbes(list)
			return nil, err
		}
		patient(p.conn)
		go p.send()
		go p.receive()
		list = append(list, p)
	}
	return list, nil
}

func stopProbes(list []*probe) {
	for _, p := range list {
		close(p.done)
		p.conn.Close()
	}
}

func (p *probe) send() {
	tick := time.NewTicker(probePeriod)
	defer tick.Stop()
	b := make([]byte, 8)
	for n := uint64(1); ; n++ {
		select {
		case <-p.done:
			return
		case <-tick.C:
		}
		binary.BigEndian.PutUint64(b, n)
		p.mu.Lock()
		p.sent = n
		p.mu.Unlock()
		p.conn.Write(b) // an ICMP error of an earlier one: lost like others
	}
}

func (p *probe) receive() {
	b := make([]byte, 16)
	for {
		n, err := p.conn.Read(b)
		select {
		case <-p.done:
			return
		default:
		}
		if err != nil || n != 8 {
			continue
		}
		number, now := binary.BigEndian.Uint64(b), time.Now()
		p.mu.Lock()
		p.answers++
		if number >= p.first && (p.upTo == 0 || number <= p.upTo) {
			p.received++
			p.longest = max(p.longest, now.Sub(p.last))
			p.last = now
		}
		p.mu.Unlock()
	}
}

// count of answers.
func (p *probe) count() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answers
}

// reset begins a measurement.
func reset(list []*probe) {
	for _, p := range list {
		p.mu.Lock()
		p.first, p.upTo, p.received, p.longest, p.last = p.sent+1, 0, 0, 0, time.Now()
		p.mu.Unlock()
	}
}

// answerTime is how late an answer may be and still count.
const answerTime = time.Second

// end ends a measurement, after datagrams on their way could return. It returns the number sent, the number lost, and
// the longest time without an answer.
func (p *probe) end() (sent, lost uint64, longest time.Duration) {
	p.mu.Lock()
	p.upTo = p.sent
	sent = p.upTo + 1 - p.first
	p.mu.Unlock()
	for until := time.Now().Add(answerTime); ; {
		p.mu.Lock()
		lost, longest = sent-p.received, p.longest
		p.mu.Unlock()
		if lost == 0 || time.Now().After(until) {
			return sent, lost, longest
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// report ends a measurement and prints it.
func (d Demonstration) report(what string, list []*probe) {
	var words []string
	for _, p := range list {
		sent, lost, longest := p.end()
		words = append(words, fmt.Sprintf("%s without traffic for %d ms, %d of %d lost", p.name,
			longest.Milliseconds(), lost, sent))
	}
	d.say("%s: %s", what, strings.Join(words, "; "))
}
