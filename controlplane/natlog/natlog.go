// SPDX-License-Identifier: Apache-2.0

// Package natlog sends a record of each block of ports that NAT44 gives to a subscriber or takes back (RFC 6888
// REQ-12): as syslog messages (RFC 5424, RFC 5426) and as IPFIX (RFC 7011, RFC 8158).
package natlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"isthmus/api"
)

const (
	priority      = 16*8 + 6 // local0, informational (RFC 5424 §6.2.1)
	template      = 256
	templateEvery = time.Minute // RFC 7011 §8.4: again and again over UDP
	complainEvery = time.Minute
)

// Log sends records. Any goroutine may call it.
type Log struct {
	log *slog.Logger
	mu  sync.Mutex

	targets    string // what it is configured for
	syslog     []net.Conn
	ipfix      []net.Conn
	host       string
	sequence   uint32    // IPFIX data records sent
	told       time.Time // when the template was sent
	complained time.Time
}

// New makes a log that sends nowhere yet.
func New(log *slog.Logger) *Log {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "-" // NILVALUE
	}
	return &Log{log: log, host: host}
}

// Configure says where records go from now on.
func (l *Log) Configure(syslog, ipfix []netip.AddrPort) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	targets := fmt.Sprint(syslog, ipfix)
	if targets == l.targets {
		return nil
	}
	for _, c := range append(l.syslog, l.ipfix...) {
		c.Close()
	}
	l.targets, l.told = targets, time.Time{}
	var errSyslog, errIPFIX error
	l.syslog, errSyslog = dial(syslog)
	l.ipfix, errIPFIX = dial(ipfix)
	return errors.Join(errSyslog, errIPFIX)
}

func dial(to []netip.AddrPort) (made []net.Conn, err error) {
	for _, a := range to {
		c, e := net.Dial("udp", a.String())
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		made = append(made, c)
	}
	return made, err
}

// Event records a block, when that is what the event is about.
func (l *Log) Event(e *api.Event) bool {
	if e.Type != api.EventTypeNATAllocate && e.Type != api.EventTypeNATRelease {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.send(l.syslog, []byte(l.message(e)))
	if len(l.ipfix) > 0 {
		l.send(l.ipfix, l.record(e, time.Now()))
	}
	return true
}

// send loses what cannot be sent, as datagrams may be lost anywhere.
func (l *Log) send(to []net.Conn, b []byte) {
	for _, c := range to {
		if _, err := c.Write(b); err != nil && time.Since(l.complained) > complainEvery {
			l.complained = time.Now()
			l.log.Warn("a record of NAT44 was not sent", "to", c.RemoteAddr(), "error", err)
		}
	}
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
func (l *Log) record(e *api.Event, now time.Time) []byte {
	put := binary.BigEndian
	b := make([]byte, 16, 128)
	if now.Sub(l.told) >= templateEvery {
		l.told = now
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
	put.PutUint32(b[8:], l.sequence)
	l.sequence++
	return b
}
