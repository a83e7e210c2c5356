// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// writer appends IEs. The first value that cannot be encoded is its error.
type writer struct {
	b   []byte
	err error
}

func (w *writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// open begins an IE; close sets its length. In values that few messages have: defer w.close(w.open(ie)).
func (w *writer) open(ie uint16) int {
	w.b = binary.BigEndian.AppendUint16(w.b, ie)
	w.b = append(w.b, 0, 0)
	return len(w.b)
}

func (w *writer) close(at int) {
	n := len(w.b) - at
	if n > 0xffff {
		w.fail("IE of %d octets: %w", n, ErrTooLong)
		return
	}
	binary.BigEndian.PutUint16(w.b[at-2:], uint16(n))
}

// group writes a grouped IE, or one of several parts.
func (w *writer) group(ie uint16, inside func()) {
	at := w.open(ie)
	inside()
	w.close(at)
}

func (w *writer) octets(ie uint16, v ...byte) {
	w.b = binary.BigEndian.AppendUint16(w.b, ie)
	w.b = binary.BigEndian.AppendUint16(w.b, uint16(len(v)))
	w.b = append(w.b, v...)
}

func (w *writer) uint8(ie uint16, v uint8) { w.b = append(w.b, byte(ie>>8), byte(ie), 0, 1, v) }

// write8 is uint8 of what has a type of its own.
func write8[V ~uint8](w *writer, ie uint16, v V) { w.uint8(ie, uint8(v)) }

func (w *writer) uint16(ie uint16, v uint16) {
	w.b = append(w.b, byte(ie>>8), byte(ie), 0, 2, byte(v>>8), byte(v))
}

func (w *writer) uint32(ie uint16, v uint32) {
	w.b = append(w.b, byte(ie>>8), byte(ie), 0, 4, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func (w *writer) put16(v uint16) { w.b = binary.BigEndian.AppendUint16(w.b, v) }
func (w *writer) put32(v uint32) { w.b = binary.BigEndian.AppendUint32(w.b, v) }
func (w *writer) put64(v uint64) { w.b = binary.BigEndian.AppendUint64(w.b, v) }

// text writes a length of two octets and the text.
func (w *writer) text(text string) {
	if len(text) > 0xffff {
		w.fail("text of %d octets", len(text))
		return
	}
	w.put16(uint16(len(text)))
	w.b = append(w.b, text...)
}

// named writes a name that readName reads.
func (w *writer) named(ie uint16, text string) {
	if text == "" || len(text) > maxText || !printable([]byte(text), true) {
		w.fail("name %q", text)
	}
	defer w.close(w.open(ie))
	w.b = append(w.b, text...)
}

// instance writes a Network Instance: the plain text that operators configure.
func (w *writer) instance(ie uint16, text string) {
	if text == "" {
		return
	}
	defer w.close(w.open(ie))
	w.plain(text)
}

func (w *writer) plain(text string) {
	var ok bool
	if w.b, ok = appendText(w.b, text); !ok {
		w.fail("name %q", text)
	}
}

// labelled writes a domain name; a name that does not fit labels goes out as its original text.
func (w *writer) labelled(text string) {
	if b, ok := appendLabels(w.b, text); ok && len(b)-len(w.b) < 255 {
		w.b = b
		return
	}
	w.plain(text)
}

func (w *writer) seconds(ie uint16, d time.Duration) {
	if n := d / time.Second; n < 0 || n > 0xffffffff {
		w.fail("%s is not in the range of seconds", d)
	} else {
		w.uint32(ie, uint32(n))
	}
}

// time writes the seconds of RFC 5905 §6; the zero time is 0.
func (w *writer) time(ie uint16, t time.Time) {
	if t.IsZero() {
		w.uint32(ie, 0)
		return
	}
	w.uint32(ie, uint32(t.Unix()+ntpEpoch))
}

func (w *writer) address(a netip.Addr) {
	if a.Is4() {
		v := a.As4()
		w.b = append(w.b, v[:]...)
	} else if a.IsValid() {
		v := a.As16()
		w.b = append(w.b, v[:]...)
	}
}

func when(yes bool, f byte) byte {
	if yes {
		return f
	}
	return 0
}

// families checks that addresses stand where their families belong.
func (w *writer) families(a4, a6 netip.Addr) {
	if a4.IsValid() && !a4.Is4() || a6.IsValid() && !a6.Is6() {
		w.fail("%s, %s: not an IPv4 and an IPv6 address", a4, a6)
	}
}

func (w *writer) node(ie uint16, n NodeID) {
	at := w.open(ie)
	switch {
	case n.Addr.Is4():
		w.b = append(w.b, 0)
		w.address(n.Addr)
	case n.Addr.IsValid():
		w.b = append(w.b, 1)
		w.address(n.Addr)
	default:
		w.b = append(w.b, 2)
		w.labelled(n.FQDN)
	}
	w.close(at)
}

func (w *writer) fseid(ie uint16, f FSEID) {
	w.families(f.IPv4, f.IPv6)
	at := w.open(ie)
	w.b = append(w.b, when(f.IPv4.IsValid(), 2)|when(f.IPv6.IsValid(), 1))
	w.put64(f.SEID)
	w.address(f.IPv4)
	w.address(f.IPv6)
	w.close(at)
}

func (w *writer) fteid(ie uint16, f FTEID) {
	w.families(f.IPv4, f.IPv6)
	at := w.open(ie)
	if f.Choose {
		w.b = append(w.b, 4|when(f.WantIPv4, 1)|when(f.WantIPv6, 2)|when(f.HasChooseID, 8))
		if f.HasChooseID {
			w.b = append(w.b, f.ChooseID)
		}
	} else {
		w.b = append(w.b, when(f.IPv4.IsValid(), 1)|when(f.IPv6.IsValid(), 2))
		w.put32(f.TEID)
		w.address(f.IPv4)
		w.address(f.IPv6)
	}
	w.close(at)
}

func (w *writer) ueip(ie uint16, u UEIP) {
	prefix := u.IPv6.Addr()
	w.families(u.IPv4, prefix)
	length := u.ChooseLength
	if prefix.IsValid() {
		length = uint8(u.IPv6.Bits())
	}
	long := length != 0 && length != 64
	at := w.open(ie)
	w.b = append(w.b, when(prefix.IsValid(), ueIPv6)|when(u.IPv4.IsValid(), ueIPv4)|when(u.Destination, ueDestination)|
		when(u.ChooseIPv4, ueChooseIPv4)|when(u.ChooseIPv6, ueChooseIPv6)|when(long, ueLength))
	w.address(u.IPv4)
	w.address(prefix)
	if long {
		w.b = append(w.b, length)
	}
	w.close(at)
}

// route writes a framed route of either family: the IE is the route's.
func (w *writer) route(_ uint16, route netip.Prefix) {
	ie := ieFramedRoute
	if route.Addr().Is6() {
		ie = ieFramedIPv6Route
	}
	w.octets(ie, []byte(route.String())...)
}

// features writes as many pairs of octets as there are features in.
func (w *writer) features(up bool, f uint64) {
	ie, n := ieCPFeatures, 1
	if up {
		ie, n = ieUPFeatures, 2
	} else if f == 0 {
		return
	}
	defer w.close(w.open(ie))
	for i := 0; i < n || f>>(8*i) != 0 && i < 8 || up && i%2 == 1; i++ {
		w.b = append(w.b, byte(f>>(8*i)))
	}
}

func (w *writer) failed(ie uint16, f FailedRule) {
	defer w.close(w.open(ie))
	w.b = append(w.b, byte(f.Type))
	switch f.Type {
	case RulePDR, RuleMAR:
		w.put16(uint16(f.ID))
	case RuleBAR, RuleSRR:
		w.b = append(w.b, byte(f.ID))
	default:
		w.put32(f.ID)
	}
}

func (w *writer) snssai(ie uint16, text string) {
	sst, sd, given := strings.Cut(text, "-")
	n, err := strconv.ParseUint(sst, 10, 8)
	detail := []byte{0xff, 0xff, 0xff}
	if err == nil && given {
		detail, err = hex.DecodeString(sd)
	}
	if err != nil || len(detail) != 3 {
		w.fail("S-NSSAI %q", text)
		return
	}
	w.octets(ie, byte(n), detail[0], detail[1], detail[2])
}

func (w *writer) user(ie uint16, text string) {
	if len(text) > 255 || !printable([]byte(text), false) {
		w.fail("user id %q", text)
		return
	}
	defer w.close(w.open(ie))
	if len(text) <= 15 && strings.Trim(text, "0123456789") == "" {
		w.b = append(w.b, 1, byte((len(text)+1)/2))
		w.b = appendDigits(w.b, text)
	} else {
		w.b = append(w.b, 1<<userNAI, byte(len(text)))
		w.b = append(w.b, text...)
	}
}
