// SPDX-License-Identifier: Apache-2.0

// Package natlog sends a record of each block of ports that NAT44 assigns to a subscriber or frees (RFC 6888 REQ-12).
// Formats are syslog messages (RFC 5424, RFC 5426) and IPFIX (RFC 7011, RFC 8158).
package natlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"isthmus/api"
)

const (
	priority      = 16*8 + 6 // local0, informational (RFC 5424 §6.2.1)
	template      = 256
	templateEvery = time.Minute // RFC 7011 §8.4: again and again over UDP

	firstWait  = time.Second // before a socket is tried again
	lastWait   = 30 * time.Second
	writesOwed = 2 // the first one's error comes with the second
)

// Log sends records. Any goroutine may call it.
type Log struct {
	log  *slog.Logger
	tell func(kind, subject string, args ...any)
	dial func(network, address string) (net.Conn, error)
	now  func() time.Time
	host string

	mu         sync.Mutex
	collectors []*collector
}

// State is what there is to know of a collector.
type State struct {
	Address  string
	Protocol string // syslog, ipfix
	State    string // up, down
	Since    time.Time
	Sent     uint64 // records
	Lost     uint64 // of those that could not be sent, or that its host refused
	Error    string // the last one
}

// collector receives records. Over UDP a collector does not answer: it is up until an error occurs.
type collector struct {
	State
	conn net.Conn      // nil: there was none yet
	owes int           // what has to succeed until it is up
	next time.Time     // when another socket is tried; zero: not
	wait time.Duration // before that

	sequence uint32    // IPFIX data records of this socket
	told     time.Time // when the template was sent
}

// New makes a log without collectors. The function takes events.
func New(log *slog.Logger, tell func(kind, subject string, args ...any)) *Log {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "-" // NILVALUE
	}
	return &Log{log: log, tell: tell, dial: net.Dial, now: time.Now, host: host}
}

// Configure sets the collectors. Present ones go on unchanged; the error names unreachable ones, which Run tries again.
func (l *Log) Configure(syslog, ipfix []netip.AddrPort) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.collectors
	l.collectors = nil
	add := func(protocol string, addresses []netip.AddrPort) {
		for _, a := range addresses {
			same := func(c *collector) bool { return c.Protocol == protocol && c.Address == a.String() }
			if i := slices.IndexFunc(before, same); i >= 0 {
				l.collectors = append(l.collectors, before[i])
				before = slices.Delete(before, i, i+1)
				continue
			}
			made := State{Address: a.String(), Protocol: protocol, State: "up", Since: l.now()}
			l.collectors = append(l.collectors, &collector{State: made, wait: firstWait})
		}
	}
	add("syslog", syslog)
	add("ipfix", ipfix)
	for _, c := range before {
		c.close()
	}
	for _, c := range l.collectors {
		if c.conn == nil {
			err = errors.Join(err, l.open(c))
		}
	}
	return err
}

// Run tries again what failed, until ctx ends.
func (l *Log) Run(ctx context.Context) {
	ticker := time.NewTicker(firstWait)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.retry()
		}
	}
}

// retry makes the sockets whose time has come.
func (l *Log) retry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.collectors {
		if !c.next.IsZero() && !l.now().Before(c.next) {
			l.open(c) // what fails is in its state
		}
	}
}

// States are those of all collectors.
func (l *Log) States() (list []State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.collectors {
		list = append(list, c.State)
	}
	return list
}

// open makes a socket that replaces the failed socket.
func (l *Log) open(c *collector) error {
	conn, err := l.dial("udp", c.Address)
	if err != nil {
		l.failed(c, err, 1)
		c.later(l.now())
		return fmt.Errorf("%s collector: %w", c.Protocol, err)
	}
	c.close()
	c.conn, c.next, c.sequence, c.told = conn, time.Time{}, 0, time.Time{}
	l.succeeded(c)
	return nil
}

func (c *collector) close() {
	if c.conn != nil {
		c.conn.Close()
	}
}

func (c *collector) later(now time.Time) {
	c.next, c.wait = now.Add(c.wait), min(2*c.wait, lastWait)
}

// failed notes an error, and what has to succeed before the collector is taken to be reached.
func (l *Log) failed(c *collector, err error, owes int) {
	c.owes, c.Error, c.told = owes, err.Error(), time.Time{} // the next record's receiver may have no template
	if c.State.State == "down" {
		return
	}
	c.State.State, c.Since = "down", l.now()
	l.log.Warn("records of NAT44 do not reach a collector", "collector", c.Address, "protocol", c.Protocol,
		"error", err)
	l.tell("collector.down", c.Address, "protocol", c.Protocol, "error", c.Error)
}

func (l *Log) succeeded(c *collector) {
	if c.owes == 0 {
		return
	}
	if c.owes--; c.owes == 0 {
		c.State.State, c.Since, c.Error, c.next, c.wait = "up", l.now(), "", time.Time{}, firstWait
		l.tell("collector.up", c.Address, "protocol", c.Protocol, "lost", c.Lost)
	}
}

// Event records a block, when that is what the event is about.
func (l *Log) Event(e *api.Event) bool {
	if e.Type != api.EventTypeNATAllocate && e.Type != api.EventTypeNATRelease {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.collectors {
		l.send(c, e)
	}
	return true
}

// send loses what cannot be sent, as datagrams may be lost anywhere; it is counted.
func (l *Log) send(c *collector, e *api.Event) {
	if c.conn == nil {
		c.Lost++
		return
	}
	err := l.write(c, e)
	// One before was refused, for nothing listened (RFC 1122 §4.1.3.3); this one was not sent.
	if errors.Is(err, unix.ECONNREFUSED) {
		c.Lost++
		l.failed(c, err, writesOwed)
		err = l.write(c, e)
	}
	if err == nil {
		c.Sent++
		l.succeeded(c)
		return
	}
	c.Lost++
	l.failed(c, err, writesOwed)
	if c.next.IsZero() { // an address of ours that went takes the socket along, which another one is the way out of
		c.later(l.now())
	}
}

func (l *Log) write(c *collector, e *api.Event) error {
	b := []byte(nil)
	if c.Protocol == "syslog" {
		b = []byte(l.message(e))
	} else {
		b = c.record(e, l.now())
	}
	_, err := c.conn.Write(b)
	return err
}

func at(e *api.Event) time.Time { return time.Unix(0, int64(e.Usage.StartNs)).UTC() }

// message is one of RFC 5424: local0.info, without structured data.
func (l *Log) message(e *api.Event) string {
	what := "allocate"
	if e.Type == api.EventTypeNATRelease {
		what = "release"
	}
	return fmt.Sprintf("<%d>1 %s %s isthmus %d NAT44 - block %s external=%s ports=%d-%d inside=%s seid=%#x",
		priority, at(e).Format("2006-01-02T15:04:05.000Z"), l.host, os.Getpid(), what, e.Local, e.Rule>>16,
		e.Rule&0xffff, e.Peer, e.SEID)
}

// fields of a record: information elements of IANA's registry, and their lengths.
var fields = [...][2]uint16{
	{323, 8}, // observationTimeMilliseconds
	{230, 1}, // natEvent
	{8, 4},   // sourceIPv4Address
	{225, 4}, // postNATSourceIPv4Address
	{361, 2}, // portRangeStart
	{362, 2}, // portRangeEnd
}

const (
	portBlockAllocation   = 16 // natEvent of IANA's registry (RFC 8158 §8.2)
	portBlockDeallocation = 17
)

// record is an IPFIX message of one record, now and then with the template in front.
func (c *collector) record(e *api.Event, now time.Time) []byte {
	put := binary.BigEndian
	b := make([]byte, 16, 128)
	if now.Sub(c.told) >= templateEvery {
		c.told = now
		b = put.AppendUint16(b, 2) // set of templates
		b = put.AppendUint16(b, uint16(8+4*len(fields)))
		b = put.AppendUint16(b, template)
		b = put.AppendUint16(b, uint16(len(fields)))
		for _, f := range fields {
			b = put.AppendUint16(put.AppendUint16(b, f[0]), f[1])
		}
	}
	event := byte(portBlockAllocation)
	if e.Type == api.EventTypeNATRelease {
		event = portBlockDeallocation
	}
	length := 4
	for _, f := range fields {
		length += int(f[1])
	}
	b = put.AppendUint16(put.AppendUint16(b, template), uint16(length))
	b = put.AppendUint64(b, uint64(at(e).UnixMilli()))
	b = append(b, event)
	b = append(append(b, e.Peer.Bytes[:4]...), e.Local.Bytes[:4]...)
	b = put.AppendUint16(put.AppendUint16(b, uint16(e.Rule>>16)), uint16(e.Rule))
	put.PutUint16(b, 10) // version
	put.PutUint16(b[2:], uint16(len(b)))
	put.PutUint32(b[4:], uint32(now.Unix()))
	put.PutUint32(b[8:], c.sequence)
	c.sequence++
	return b
}
