// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/hex"
	"strings"
	"testing"
)

// The encoder against frames written out by hand, field by field.
func TestPackets(t *testing.T) {
	l, err := newLayout(Options{Subscribers: 4, Workers: 1}, "auto")
	if err != nil {
		t.Fatal(err)
	}
	qinq, pppoe := l.halves()[0], l.halves()[1]
	const innerUp = "4500 0026 0000 4000 3f11 f536 0a400000 cb007150 0fa0 1388 0012 0000 00000000000000000000"
	for _, test := range []struct {
		name   string
		make   func(half, bool, int) (*packet, error)
		half   half
		uplink bool
		want   string
	}{
		{"qinq up", accessPacket, qinq, true, "020000aa0001 020100000000 88a8 0064 8100 0001 0800 " + innerUp},
		{"pppoe down", accessPacket, pppoe, false,
			"020100000002 020000aa0001 88a8 03e8 8100 0001 8864 11 00 0001 0028 0021" +
				"4500 0026 0000 4000 3f11 f534 cb007150 0a400002 1388 0fa0 0012 0000 00000000000000000000"},
		{"gtpu up", corePacket, qinq, true, "020000cc0002 020000cc0001 0800" +
			"4500 0052 0000 0000 4011 8e65 c0000201 c6336401 0868 0868 003e 0000" +
			"34 ff 002e 10000000 0000 00 85 01 10 09 00 " + innerUp},
		{"gtpu down", corePacket, pppoe, false, "020000cc0001 020000cc0002 0800" +
			"4500 0052 0000 0000 4011 8e65 c6336401 c0000201 0868 0868 003e 0000" +
			"34 ff 002e 20000002 0000 00 85 01 00 09 00" +
			"4500 0026 0000 4000 3f11 f534 cb007150 0a400002 1388 0fa0 0012 0000 00000000000000000000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := test.make(test.half, test.uplink, 10)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := hex.EncodeToString(p.bytes), strings.ReplaceAll(test.want, " ", ""); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if len(p.bytes) != p.header+10 {
				t.Errorf("%d bytes, header %d", len(p.bytes), p.header)
			}
		})
	}
}

// Fields lie where the encoder put them.
func TestFieldOffsets(t *testing.T) {
	l, err := newLayout(Options{Subscribers: 4, Workers: 1}, "auto")
	if err != nil {
		t.Fatal(err)
	}
	at := func(p *packet, offset, n int) string { return hex.EncodeToString(p.bytes[offset : offset+n]) }
	for _, h := range l.halves() {
		access, err := accessPacket(h, true, 0)
		if err != nil {
			t.Fatal(err)
		}
		core, err := corePacket(h, true, 0)
		if err != nil {
			t.Fatal(err)
		}
		wantUE := "0a40000" + string('0'+rune(h.first))
		if at(access, access.ueAddress, 4) != wantUE || at(core, core.ueAddress, 4) != wantUE {
			t.Errorf("%s: UE address %s %s", h.name, at(access, access.ueAddress, 4), at(core, core.ueAddress, 4))
		}
		if at(core, core.teid, 4) != "1000000"+string('0'+rune(h.first)) {
			t.Errorf("%s: TEID %s", h.name, at(core, core.teid, 4))
		}
		if at(access, access.udpSource, 2) != "1388" || at(access, access.mac, 4) != "02010000" {
			t.Errorf("%s: port %s, MAC %s", h.name, at(access, access.udpSource, 2), at(access, access.mac, 4))
		}
		if h.pppoe && at(access, access.pppoe, 2) != "0001" {
			t.Errorf("PPPoE session %s", at(access, access.pppoe, 2))
		}
	}
}

func TestVerdict(t *testing.T) {
	much, little := 2e-5, 1e-5
	good := Result{CheckPass: CheckPass{Checked: 5}}
	for _, test := range []struct {
		change func(*Result)
		want   string
	}{
		{func(*Result) {}, ""},
		{func(r *Result) { r.CheckPass.Checked = 0 }, "no packet came through"},
		{func(r *Result) { r.Wrong = 1 }, "wrong"},
		{func(r *Result) { r.CheckPass.Lost = 1 }, "lost"},
		{func(r *Result) { r.LossRatio = &much; r.Dropped = map[string]uint64{"policed": 3} }, "3 by policed"},
		{func(r *Result) { r.LossRatio = &little }, ""},
	} {
		r := good
		test.change(&r)
		err := r.Verdict()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}
