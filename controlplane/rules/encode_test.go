// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// fill sets every field of a value, or leaves optional ones out.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case netip.Addr:
		a := netip.AddrFrom4([4]byte{10, byte(r.IntN(256)), 0, 1})
		if r.IntN(2) == 0 {
			a = netip.AddrFrom16([16]byte{0x20, 1, 5: byte(r.IntN(256)), 15: 9})
		}
		v.Set(reflect.ValueOf(a))
		return
	case netip.Prefix:
		v.Set(reflect.ValueOf(netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 3: byte(r.IntN(256))}), 64)))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(int64(r.IntN(1<<30)), 5)))
		return
	case time.Duration:
		v.Set(reflect.ValueOf(time.Duration(r.IntN(1 << 40))))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i), depth+1)
		}
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		if n := r.IntN(3); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(r, v.Index(i), depth+1)
			}
		}
	case reflect.String:
		v.SetString(strings.Repeat("ä", r.IntN(4)))
	case reflect.Array: // a name of the contract, or octets
		for i := range min(v.Len(), r.IntN(8)) {
			if v.Type().Elem().Kind() != reflect.Uint8 {
				break
			}
			v.Index(i).SetUint(uint64('a' + r.IntN(20)))
		}
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64() >> (64 - v.Type().Bits()) >> r.IntN(v.Type().Bits()))
	}
}

// clean takes out what a session that was accepted never has.
func clean(s *Session) {
	choice := func(f *pfcp.FTEID, list []pfcp.UEIP) {
		if f != nil {
			*f = pfcp.FTEID{TEID: f.TEID, IPv4: f.IPv4, IPv6: f.IPv6, HasChooseID: f.HasChooseID,
				ChooseID: f.ChooseID}
			if !f.HasChooseID {
				f.ChooseID = 0
			}
		}
		for i := range list {
			list[i].ChooseIPv4, list[i].ChooseIPv6, list[i].ChooseLength = false, false, 0
		}
	}
	for i := range s.PDR {
		p := &s.PDR[i]
		p.ActivatePredefined, p.Activation, p.Deactivation = nil, time.Time{}, time.Time{}
		choice(p.PDI.LocalFTEID, p.PDI.UEIP)
		for k := range p.PDI.SDF {
			f := &p.PDI.SDF[k]
			if !f.HasToS {
				f.ToS, f.Mask = 0, 0
			}
			if !f.HasSPI {
				f.SPI = 0
			}
			if !f.HasLabel {
				f.FlowLabel = 0
			}
			if !f.HasID {
				f.ID = 0
			}
		}
	}
	for i := range s.Endpoint {
		choice(s.Endpoint[i].LocalFTEID, s.Endpoint[i].UEIP)
	}
	if l := s.Line; l != nil { // what the compiler fills in
		*l = api.Session{Encap: l.Encap, OuterTPID: l.OuterTPID, STag: l.STag, CTag: l.CTag, MAC: l.MAC,
			MRU:          l.MRU,
			PPPoESession: l.PPPoESession, Port: l.Port, Subport: l.Subport, Pipe: l.Pipe,
			PipeProfile: l.PipeProfile,
			Mirror:      l.Mirror, Counter: l.Counter, LCPMagic: l.LCPMagic, LCPInterval: l.LCPInterval,
			LCPCount:  l.LCPCount,
			LCPOpened: l.LCPOpened, MSS: l.MSS}
	}
	for i := range s.FAR {
		if w := s.FAR[i].Forwarding; w != nil {
			w.SendEndMarker, w.DropBuffered = false, false
		}
	}
}

// Any session survives encoding. A new and forgotten field fails here.
func TestEncoding(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var s Session
		fill(r, reflect.ValueOf(&s).Elem(), 0)
		clean(&s)
		back, err := Decode(AppendSession(nil, &s))
		if err != nil || !reflect.DeepEqual(&s, back) {
			t.Fatalf("%v\n%+v\n%+v", err, s, *back)
		}
	}
}

func TestEncodingOfAnotherVersion(t *testing.T) {
	s, _, _ := Establish(testSettings(), giveNothing{}, request(1, "10.45.0.5"))
	b := AppendSession(nil, s)
	for _, version := range []byte{0, encodingVersion - 1, encodingVersion + 1} {
		b[0] = version
		_, err := Decode(b)
		testkit.ErrorIf(t, !errors.Is(err, ErrVersion), "version %d: %v", version, err)
	}
}

func FuzzDecode(f *testing.F) {
	s, _, _ := Establish(testSettings(), giveNothing{}, request(1, "10.45.0.5"))
	f.Add(AppendSession(nil, s))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(data)
		if err != nil {
			return
		}
		if set := testSettings(); set.Check(s) == nil {
			Compile(Context{Set: set}, s)
		}
	})
}

// 2 PDRs, 2 FARs, a QER, a URR: what a session takes in memory and in the store (session/README.md).
func TestSizeOfASession(t *testing.T) {
	s, _, _ := Establish(testSettings(), giveNothing{}, request(1, "10.45.0.5"))
	testkit.Equal(t, len(AppendSession(nil, s)), 193, "bytes")
}
