// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// resized is a body from a program whose structs are longer or shorter by so many bytes; tail is the last additional
// byte.
func resized(t *testing.T, body []byte, more int, tail byte) []byte {
	t.Helper()
	var out []byte
	for len(body) > 0 {
		p, rest, err := NextPart(body)
		if err != nil {
			t.Fatal(err)
		}
		size := p.Size + more
		out = binary.NativeEndian.AppendUint16(out, p.Number)
		out = binary.NativeEndian.AppendUint16(out, uint16(size))
		out = binary.NativeEndian.AppendUint32(out, uint32(p.Count))
		for i := range p.Count {
			row := make([]byte, max(size, p.Size))
			copy(row, p.Rows[i*p.Size:(i+1)*p.Size])
			if more > 0 {
				row[size-1] = tail
			}
			out = append(out, row[:size]...)
		}
		out = append(out, make([]byte, -(size*p.Count)&7)...)
		body = rest
	}
	return out
}

func accessList() []byte {
	rules := []ACLRule{{SourcePort: [2]uint16{0, 65535}, Action: ActionPermit},
		{Protocol: 6, ProtocolMask: 255, Priority: 7}}
	return AppendRows(Body(&ACL{DefaultAction: ActionPermit, Count: 2}), rules)
}

func TestPartsOfOtherSizes(t *testing.T) {
	body := accessList()
	for _, more := range []int{0, 8, 48, -4} {
		other := resized(t, body, more, 0)
		var head ACL
		rest, err := ReadRow(other, &head)
		if err != nil || head.DefaultAction != ActionPermit || (head.Count == 2) != (more >= 0) {
			t.Fatalf("%d: %+v %v", more, head, err)
		}
		rules, err := ReadRows[ACLRule](rest)
		if err != nil || len(rules) != 2 || rules[1].Protocol != 6 || (rules[1].Priority == 7) != (more >= 0) {
			t.Fatalf("%d: %+v %v", more, rules, err)
		}
	}
	// A report's unknown fields are dropped.
	if rules, err := ReadRows[ACLRule](resized(t, body, 8, 9)[SizeofPartHead+16:]); err != nil || len(rules) != 2 {
		t.Fatal(rules, err)
	}
}

// The digest of an object is that of the data plane (dataplane/core/contract_test.c has the same number), whatever
// the sizes are.
func TestBodyDigest(t *testing.T) {
	body := accessList()
	want := BodyDigest(body)
	if want != 0xa9a2dadf3f9293b3 {
		t.Errorf("%#x", want)
	}
	for _, more := range []int{8, 48} {
		if got := BodyDigest(resized(t, body, more, 0)); got != want {
			t.Errorf("%d bytes more: %#x, want %#x", more, got, want)
		}
		if got := BodyDigest(resized(t, body, more, 1)); got == want {
			t.Errorf("%d bytes more that say something: the same digest", more)
		}
	}
	for i := range body {
		changed := bytes.Clone(body)
		changed[i] ^= 1
		if BodyDigest(changed) == want {
			t.Errorf("byte %d makes no difference", i)
		}
	}
}

func TestPartsThatLie(t *testing.T) {
	head := func(number, size uint16, count uint32, rest ...byte) []byte {
		b := binary.NativeEndian.AppendUint16(nil, number)
		b = binary.NativeEndian.AppendUint16(b, size)
		return append(binary.NativeEndian.AppendUint32(b, count), rest...)
	}
	zeros := make([]byte, 64)
	for _, c := range []struct {
		name, want string
		body       []byte
	}{
		{"half a head", "ends within the head", zeros[:7]},
		{"no size", "does not fit", head(PartAcknowledge, 0, 0)},
		{"no size and many", "does not fit", head(PartAcknowledge, 0, 1<<32-1)},
		{"more than came", "does not fit", head(PartAcknowledge, 8, 2, zeros[:8]...)},
		{"far more than came", "does not fit", head(PartAcknowledge, 0xffff, 1<<32-1, zeros...)},
		{"no padding", "does not fit", head(PartAcknowledge, 4, 1, zeros[:4]...)},
		{"padding", "padding", head(PartAcknowledge, 4, 1, 0, 0, 0, 0, 0, 0, 0, 1)},
		{"another struct", "api_status where api_acknowledge is expected", head(PartStatus, 8, 1, zeros[:8]...)},
		{"an unknown struct", "part 9999 where", head(9999, 8, 1, zeros[:8]...)},
	} {
		if _, err := ReadRows[Acknowledge](c.body); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// A message of one-byte structs would take 112 times its room in our size.
	many := head(PartTotalRow, 1, 1<<20, make([]byte, 1<<20)...)
	if _, err := ReadRows[TotalRow](many); err == nil || !strings.Contains(err.Error(),
		"api_total_row of 1 bytes, which has 112 here") {
		t.Error(err)
	}
	var a Acknowledge
	if _, err := ReadRow(AppendRows(nil, []Acknowledge{{1}, {2}}), &a); err == nil {
		t.Error("two structs where one is expected")
	}
	if _, err := ReadRow(nil, &a); err == nil {
		t.Error("nothing where one is expected")
	}
}

func TestVersions(t *testing.T) {
	for _, c := range [][5]uint32{{3, 3, 3, 3, 3}, {3, 5, 4, 9, 5}, {3, 5, 1, 4, 4}, {3, 5, 6, 9, 0}, {3, 5, 1, 2, 0},
		{3, 3, 5, 2, 0}, {3, 3, 0, 1<<32 - 1, 3}} {
		if got := CommonVersion(c[0], c[1], c[2], c[3]); got != c[4] {
			t.Errorf("%v: %d", c, got)
		}
	}
}

func TestLayouts(t *testing.T) {
	if err := CompareLayouts(Layouts(), Version); err != nil {
		t.Fatal(err)
	}
	if n := len(layoutParts()); n < 80 || len(layoutOf(PartSession).steps) < 5 {
		t.Fatalf("%d parts", n)
	}
	for _, p := range layoutParts() { // a former version ended after any field
		for _, s := range p.steps {
			l := Layout{Version: Version, Part: p.part, Size: s.size, Digest: s.digest}
			if err := CompareLayouts([]Layout{l}, Version); err != nil {
				t.Error(err)
			}
			l.Digest++
			if err := CompareLayouts([]Layout{l}, Version); err == nil {
				t.Errorf("%s of %d bytes: a difference is not seen", p.name, s.size)
			}
			if l.Size += 100000; CompareLayouts([]Layout{l}, Version) != nil {
				t.Errorf("%s: a longer one is for the other side to compare", p.name)
			}
		}
	}
}
