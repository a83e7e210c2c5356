// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"isthmus/api"
)

func mobile(t *testing.T, profile string, sessions int) *mobileLayout {
	t.Helper()
	l, err := newMobile(Options{Profile: profile, Sessions: sessions, Workers: 1}, "auto")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Frames that enter and leave, written out by hand.
func TestMobilePackets(t *testing.T) {
	const (
		fromRAN  = "020000aa0001 020000aa0002 0800"
		toRAN    = "020000aa0002 020000aa0001 0800"
		fromCore = "020000cc0001 020000cc0002 0800"
		toCore   = "020000cc0002 020000cc0001 0800"
		up       = "4500 002c 0000 4000 3f11 f530 0a400000 cb007150 0fa0 1388 0018 0000" // 16 bytes of payload behind
		upRouted = "4500 002c 0000 4000 3e11 f630 0a400000 cb007150 0fa0 1388 0018 0000"
		down     = "4500 002c 0000 4000 3f11 f530 cb007150 0a400000 1388 0fa0 0018 0000"
	)
	for _, test := range []struct {
		profile string
		uplink  bool
		size    int
		in, out string
	}{
		{"sgwu", true, 94, fromRAN + "4500 0050 0000 0000 4011 8b67 c6336601 c0000301 0868 0868 003c 0000 30 ff 002c " +
			"10000000" + up,
			toCore + "4500 0050 0000 0000 4011 8e67 c0000201 c6336401 0868 0868 003c 0000 30 ff 002c 30000000" + up},
		{"sgwu", false, 94, fromCore + "4500 0050 0000 0000 4011 8e67 c6336401 c0000201 0868 0868 003c 0000 30 ff " +
			"002c 20000000" + down,
			toRAN + "4500 0050 0000 0000 4011 8b67 c0000301 c6336601 0868 0868 003c 0000 30 ff 002c 40000000" + down},
		{"pgwu", true, 94, fromRAN + "4500 0050 0000 0000 4011 8b67 c6336601 c0000301 0868 0868 003c 0000 30 ff 002c " +
			"10000000" + up, toCore + upRouted},
		{"upf", true, 102, fromRAN + "4500 0058 0000 0000 4011 8b5f c6336601 c0000301 0868 0868 0044 0000" +
			"34 ff 0034 10000000 0000 00 85 01 10 09 00" + up, toCore + upRouted},
		{"upf", false, 58, fromCore + down, toRAN +
			"4500 0058 0000 0000 4011 8b5f c0000301 c6336601 0868 0868 0044 0000" +
			"34 ff 0034 40000000 0000 00 85 01 00 09 00" + down},
	} {
		in, out, err := mobile(t, test.profile, 4).frame(test.uplink, test.size)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range []struct {
			frame *mobileFrame
			want  string
		}{{in, test.in}, {out, test.out}} {
			got, want := hex.EncodeToString(one.frame.bytes),
				strings.ReplaceAll(one.want, " ", "")+strings.Repeat("00", 16)
			want += strings.Repeat("00", max(0, 60-len(want)/2)) // IEEE 802.3's least frame, without FCS
			if got != want {
				t.Errorf("%s uplink %v\ngot  %s\nwant %s", test.profile, test.uplink, got, want)
			}
		}
	}
}

// Fields that change from session to session lie where the encoder put them.
func TestMobileFields(t *testing.T) {
	for _, p := range MobileProfiles {
		l := mobile(t, p.Name, 1000)
		for _, uplink := range []bool{true, false} {
			in, out, err := l.frame(uplink, p.Uplink-fcs)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []*mobileFrame{in, out} {
				for _, v := range f.vary {
					got := hex.EncodeToString(f.bytes[v.offset : v.offset+v.width])
					switch got {
					case "10000000", "20000000", "30000000", "40000000", "0a400000": // TEIDs, the UE's address
					case "01": // the radio node's address
						if v.modulo != ranNodes {
							t.Errorf("%s: radio nodes count to %d", p.Name, v.modulo)
						}
					case "09": // QFI of the first bearer
						if v.divide != bearerFlows || v.modulo != 2 {
							t.Errorf("%s: QFIs: %+v", p.Name, v)
						}
					case "1388": // the server's port
						if v.divide != 1 || v.modulo != sessionWays {
							t.Errorf("%s: ports: %+v", p.Name, v)
						}
					default:
						t.Errorf("%s: field at %d is %s", p.Name, v.offset, got)
					}
				}
				if _, err := f.template(true); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// Configurations are accepted, streams are made for the largest number of sessions.
func TestMobileConfigurations(t *testing.T) {
	for _, p := range MobileProfiles {
		for _, n := range []int{1, 65536, p.most()} {
			l := mobile(t, p.Name, n)
			if _, err := planOf(l); err != nil {
				t.Error(err)
			}
			list, err := l.streams(p, p.UplinkShare, 1)
			if err != nil || len(list) != 4 {
				t.Errorf("%d streams, %v", len(list), err)
			}
		}
	}
	for profile, most := range map[string]int{"upf": maxSessions, "upf-8m-flows": maxFlowSessions} {
		for _, n := range []int{0, -1, most + 1} {
			if _, err := newMobile(Options{Profile: profile, Sessions: n, Workers: 1}, "auto"); err == nil {
				t.Errorf("%s: %d sessions were accepted", profile, n)
			}
		}
	}
}

// A session's rules name what the packets carry.
func TestMobileSessions(t *testing.T) {
	for _, test := range []struct{ profile, want string }{
		{"sgwu", "up match 2 10000003 far 1 qers 0 urrs 0; down match 2 20000003 far 2 qers 0 urrs 0; to core 1 " +
			"30000003 n4.core.0; to access 1 40000003 n4.access.3"},
		{"pgwu", "up match 6 10000003 far 1 qers 1 urrs 1; down match 4 00000000 far 2 qers 1 urrs 1; to core 0 " +
			"00000000 ; to access 1 40000003 n4.access.3"},
		{"upf", "up match 6 10000003 far 1 qers 1 urrs 1; down match 4 00000000 far 2 qers 1 urrs 1; to core 0 " +
			"00000000 ; to access 1 40000003 n4.access.3"},
	} {
		l := mobile(t, test.profile, 4)
		change, err := l.session(3)
		if err != nil {
			t.Fatal(err)
		}
		var s api.Session
		rest, err := api.ReadRow(change.Body, &s)
		if err != nil || s.PDRs != 2 || s.FARs != 2 || (s.UEIP4.String() != "10.64.0.3") != (test.profile == "sgwu") ||
			change.Key != "n4.0000000000000004" {
			t.Fatalf("%+v %v", s, err)
		}
		var words []string
		pdrs, rest, err := api.TakeRows[api.PDR](rest)
		if err != nil || len(pdrs) != 2 {
			t.Fatal(pdrs, err)
		}
		fars, rest, err := api.TakeRows[api.FAR](rest)
		if err != nil || len(fars) != 2 {
			t.Fatal(fars, err)
		}
		for i, way := range []string{"up", "down"} {
			p := pdrs[i]
			words = append(words, fmt.Sprintf("%s match %d %08x far %d qers %d urrs %d", way, p.Match, p.TEID, p.FAR,
				p.QERs, p.URRs))
		}
		for i, way := range []string{"core", "access"} {
			f := fars[i]
			words = append(words, fmt.Sprintf("to %s %d %08x %s", way, f.Outer, f.TEID, api.CString(f.Path[:])))
		}
		if got := strings.Join(words, "; "); got != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.profile, got, test.want)
		}
		if want := api.PartRoom(api.SizeofQER, int(s.QERs)) +
			api.PartRoom(api.SizeofURR, int(s.URRs)); len(rest) != want {
			t.Errorf("%s: %d bytes behind the FARs, want %d", test.profile, len(rest), want)
		}
	}
}

// Packets that were made and did not come are missing, in any stream.
func TestMissing(t *testing.T) {
	c := newCounters()
	c.streams["up"] = api.SynthRow{Offered: 10, Received: 10}
	if c.missing() {
		t.Error("all came")
	}
	c.streams["down"] = api.SynthRow{Offered: 64, Received: 0}
	if !c.missing() {
		t.Error("a vector is on its way")
	}
}

// A packet that came in and is nowhere yet keeps a reading from counting as settled.
func TestQuiet(t *testing.T) {
	for _, test := range []struct {
		total api.TotalRow
		want  bool
	}{
		{api.TotalRow{}, true},
		{api.TotalRow{In: 10, Originated: 2, Out: 8, Dropped: 2, Punted: 1, Merged: 1}, true},
		{api.TotalRow{In: 10, Out: 9}, false},
		{api.TotalRow{In: 10, Out: 9, Held: 1}, false},
	} {
		if c := (&counters{total: test.total}); c.quiet() != test.want {
			t.Errorf("%+v", test)
		}
	}
}
