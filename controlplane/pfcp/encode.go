// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// ErrTooLong is why Encode refuses what does not fit a length field.
var ErrTooLong = errors.New("more than a length of 16 bits counts")

// Encode writes a message. The type and the presence of the SEID follow from m; of h only the SEID, the sequence number
// and the priority count. The error names what cannot be encoded.
func Encode(h Header, m Message) ([]byte, error) {
	return Append(make([]byte, 0, 512), h, m)
}

var writers = sync.Pool{New: func() any { return new(writer) }}

// Append is Encode into the caller's buffer, which is returned extended.
func Append(b []byte, h Header, m Message) ([]byte, error) {
	if h.Sequence > maxSequence || h.Priority > 15 {
		return b, fmt.Errorf("sequence number %d, priority %d: out of range", h.Sequence, h.Priority)
	}
	t := m.MessageType()
	if t >= messageTypes || messages[t].encode == nil {
		return b, fmt.Errorf("no message of type %d", t)
	}
	w := writers.Get().(*writer) // the tables' functions have it, so it is in the heap
	defer writers.Put(w)
	*w = writer{b: b}
	w.header(h, t)
	messages[t].encode(w, m)
	written, err := w.b, w.err
	*w = writer{}
	n := len(written) - len(b) - uncountedBytes
	if err == nil && n > 0xffff {
		err = fmt.Errorf("message of %d octets: %w", n, ErrTooLong)
	}
	if err != nil {
		return b, err
	}
	binary.BigEndian.PutUint16(written[len(b)+2:], uint16(n))
	return written, nil
}

func (w *writer) pfd(p *PFD) {
	defer w.close(w.open(iePFDContents))
	w.b = append(w.b, when(p.Flow != "", pfdFlow)|when(p.URL != "", pfdURL)|when(p.Domain != "", pfdDomain)|
		when(p.Custom != "", pfdCustom), 0)
	for _, text := range []string{p.Flow, p.URL, p.Domain, p.Custom} {
		if text != "" {
			w.text(text)
		}
	}
}

// source writes an address with the flag of its family.
func (w *writer) source(ie uint16, a netip.Addr) {
	defer w.close(w.open(ie))
	w.b = append(w.b, when(a.Is6(), 1)|when(a.Is4(), 2))
	w.address(a)
}

func (w *writer) peer(ie uint16, p RemotePeer) {
	defer w.close(w.open(ie))
	w.b = append(w.b, when(p.Addr.Is6(), 1)|when(p.Addr.Is4(), 2)|when(p.Interface != nil,
		4)|when(p.NetworkInstance != "", 8))
	w.address(p.Addr)
	if p.Interface != nil {
		w.put16(1)
		w.b = append(w.b, *p.Interface)
	}
	if p.NetworkInstance != "" {
		w.put16(0)
		begin := len(w.b)
		w.plain(p.NetworkInstance)
		binary.BigEndian.PutUint16(w.b[begin-2:], uint16(len(w.b)-begin))
	}
}

func (w *writer) fqcsid(ie uint16, v []byte) { w.octets(ie, v...) }

func (w *writer) pool(ie uint16, text string) { w.group(ie, func() { w.text(text) }) }

// set writes what readSet reads.
func (w *writer) set(ie uint16, id string) {
	w.group(ie, func() {
		w.b = append(w.b, 0)
		w.labelled(id)
	})
}

// more is TS 29.244 §8.2.91: AURI set, the number of the reports to come not known.
func (w *writer) more(ie uint16, _ bool) { w.uint16(ie, 0x8000) }

func (w *writer) dnn(ie uint16, text string) { w.group(ie, func() { w.labelled(text) }) }

// service is TS 29.244 §8.2.27.
func (w *writer) service(m *SessionReportRequest) {
	w.b = append(w.b, when(m.DSCP != nil, 1)|when(m.DownlinkQFI != 0, 2))
	if m.DSCP != nil {
		w.b = append(w.b, *m.DSCP)
	}
	if m.DownlinkQFI != 0 {
		w.b = append(w.b, m.DownlinkQFI)
	}
}
