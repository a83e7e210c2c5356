// SPDX-License-Identifier: Apache-2.0

package ppp

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

// said are the sent packets of a protocol, in hexadecimal.
func (e *end) said(protocol uint16) (packets []string) {
	for _, line := range e.w.log {
		if f := strings.Fields(line); f[1] == e.name && f[2] == hex4(protocol) {
			packets = append(packets, f[3])
		}
	}
	return packets
}

func octets(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	testkit.Must(t, err)
	return b
}

// alone is a server whose peer is the test.
func alone(w *world, methods ...access.Method) *end {
	s := newEnd(w, "server")
	s.sends = func(uint16, []byte) {}
	s.verdict = Result{Accept: true, Network: given()}
	c := serverConfig(methods...)
	s.Start(s, s.with(c), Server, 1492)
	return s
}

// openLCP is what a peer without options does, for a server without authentication.
func openLCP(t testing.TB, s *end) {
	s.Receive(LCP, octets(t, "01 01 0004"))
	request := octets(t, s.said(LCP)[0])
	request[0] = configureAck
	s.Receive(LCP, request)
	s.w.run(t, s.w.now+time.Millisecond)
}

// One packet, and the answer that RFC 1661 or the RFC named wants; row B5's lengths.
func TestAnswers(t *testing.T) {
	zeros := strings.Repeat("00", 248)
	for _, r := range []struct {
		name     string
		opened   bool // LCP is
		protocol uint16
		packet   string
		want     string // protocol and packet; empty: none
		discard  Discard
	}{
		{"request with all that is rejected", false, LCP,
			"01 07 0018 0206000a0000 0702 0802 0506 01020304 1104 05dc",
			"c021 0407 0012 0206000a0000 0702 0802 110405dc", Taken},
		{"MRU above the line's", false, LCP, "01 07 0008 0104 05dc", "c021 0307 0008 0104 05d4", Taken},
		{"MRU of 16", false, LCP, "01 07 0008 0104 0010", "c021 0307 0008 0104 0240", Taken},
		{"MRU of 575", false, LCP, "01 07 0008 0104 023f", "c021 0307 0008 0104 0240", Taken},
		{"MRU of 576", false, LCP, "01 07 0008 0104 0240", "c021 0207 0008 0104 0240", Taken},
		{"MRU of three octets", false, LCP, "01 07 0009 0105 000010", "c021 0407 0009 0105 000010", Taken},
		{"a request for us to authenticate", false, LCP, "01 07 0008 0304 c023", "c021 0407 0008 0304 c023",
			Taken},
		{"option of length 0", false, LCP, "01 07 0008 0100 05dc", "", Malformed},
		{"option of length 1", false, LCP, "01 07 0008 0101 05dc", "", Malformed},
		{"option longer than its packet", false, LCP, "01 07 0008 0105 05dc", "", Malformed},
		{"half an option", false, LCP, "01 07 0005 01", "", Malformed},
		{"100 options", false, LCP, "01 07 00cc" + strings.Repeat("0702", 100), "", Malformed},
		{"1504 octets", false, LCP, "01 07 05e0" + strings.Repeat("02fa"+zeros, 6), "", Malformed},
		{"three octets", false, LCP, "01 07 00", "", Malformed},
		{"length below the head", false, LCP, "01 07 0003", "", Malformed},
		{"length behind the end", false, LCP, "01 07 0005", "", Malformed},
		{"padding", false, LCP, "01 07 0004 0000", "c021 0207 0004", Taken},
		{"acknowledgement of nothing", false, LCP, "02 77 0004", "", Stale},
		{"unknown code", false, LCP, "63 07 0006 abcd", "c021 0781 000a 63070006 abcd", Taken},
		{"PAP before LCP is open", false, PAP, "01 01 0008 0161 0162", "", Unexpected},
		{"IPCP before LCP is open", false, IPCP, "01 01 0004", "", Unexpected},
		{"unknown protocol before LCP is open", false, 0x80fd, "01 01 0004", "", Unexpected},
		{"echo before LCP is open", false, LCP, "09 05 0008 00000000", "", Taken},
		{"unknown protocol", true, 0x80fd, "01 01 0004", "c021 0802 000a 80fd 01010004", Taken},
		{"PAP that nobody asked for", true, PAP, "01 01 0008 0161 0162", "", Unexpected},
		{"echo of four octets and data", true, LCP, "09 05 000a 00000000 abcd", "c021 0a05 000a MAGIC abcd",
			Taken},
		{"echo without magic number", true, LCP, "09 05 0004", "", Malformed},
		{"Protocol-Reject of one octet", true, LCP, "08 05 0005 80", "", Malformed},
		{"Code-Reject of nothing", true, LCP, "07 05 0004", "", Malformed},
		{"Identification", true, LCP, "0c 05 0008 00000000", "", Taken},
		{"the address of another", true, IPCP, "01 07 000a 0306 0a010204", "8021 0307 000a 0306 0a010203",
			Taken},
		{"0.0.0.0 and name servers", true, IPCP, "01 07 0016 0306 00000000 8106 00000000 8306 00000000",
			"8021 0307 0016 0306 0a010203 8106 09090909 8306 08080808", Taken},
		{"WINS and compression", true, IPCP, "01 07 0016 0306 00000000 8206 00000000 0206 002d 0f01",
			"8021 0407 0010 8206 00000000 0206 002d 0f01", Taken},
		{"no address", true, IPCP, "01 07 0004", "8021 0307 000a 0306 0a010203", Taken},
		{"address of three octets", true, IPCP, "01 07 0009 0305 0a0102", "8021 0407 0009 0305 0a0102", Taken},
		{"interface identifier 0", true, IPv6CP, "01 07 000e 010a 0000000000000000",
			"8057 0307 000e 010a 0000000000abcdef", Taken},
		{"our interface identifier", true, IPv6CP, "01 07 000e 010a 0000000000000001",
			"8057 0307 000e 010a 0000000000abcdef", Taken},
		{"an interface identifier", true, IPv6CP, "01 07 000e 010a 0000000000000002",
			"8057 0207 000e 010a 0000000000000002", Taken},
	} {
		w := newWorld(1)
		s := alone(w)
		if r.opened {
			openLCP(t, s)
		}
		before := len(w.log)
		got := s.Receive(r.protocol, octets(t, r.packet))
		testkit.Equal(t, got, r.discard, "%s", r.name)
		answers := w.log[before:]
		if r.want == "" {
			testkit.ErrorIf(t, len(answers) > 0, "%s: answered by %v", r.name, answers)
			continue
		}
		want := strings.ReplaceAll(strings.ReplaceAll(r.want, " ", ""), "MAGIC", hex.EncodeToString([]byte{
			byte(s.magic >> 24), byte(s.magic >> 16), byte(s.magic >> 8), byte(s.magic)}))
		testkit.FatalIf(t, len(answers) == 0, "%s: no answer", r.name)
		f := strings.Fields(answers[0])
		testkit.Equal(t, f[2]+f[3], want, "%s", r.name)
	}
}

// PAP and CHAP with wrong lengths, invalid names, and too early.
func TestBadProofs(t *testing.T) {
	long := strings.Repeat("61", 254)
	for _, r := range []struct {
		name     string
		method   access.Method
		protocol uint16
		packet   string
		want     Discard
	}{
		{"PAP: name behind the end", access.PAP, PAP, "01 01 0008 0961 0162", Malformed},
		{"PAP: no password", access.PAP, PAP, "01 01 0006 0161", Malformed},
		{"PAP: password behind the end", access.PAP, PAP, "01 01 0008 0161 0262", Malformed},
		{"PAP: name of 254 octets", access.PAP, PAP, "01 01 0105 fe" + long + "0162", Malformed},
		{"PAP: acknowledgement", access.PAP, PAP, "02 01 0005 00", Unexpected},
		{"CHAP while PAP was agreed", access.PAP, CHAP, "02 01 0005 00", Unexpected},
		{"CHAP: response of 15 octets", access.CHAP, CHAP, "02 ID 0015 0f 000102030405060708090a0b0c0d0e 61",
			Malformed},
		{"CHAP: response behind the end", access.CHAP, CHAP, "02 ID 0005 10", Malformed},
		{"CHAP: name of 254 octets", access.CHAP, CHAP,
			"02 ID 0113 10 000102030405060708090a0b0c0d0e0f" + long, Malformed},
		{"CHAP: another identifier", access.CHAP, CHAP, "02 OTHER 0016 10 000102030405060708090a0b0c0d0e0f 61",
			Stale},
		{"CHAP: challenge", access.CHAP, CHAP, "01 ID 0016 10 000102030405060708090a0b0c0d0e0f 61", Unexpected},
		{"MS-CHAPv2: response of 16 octets", access.MSCHAPv2, CHAP,
			"02 ID 0016 10 000102030405060708090a0b0c0d0e0f 61", Malformed},
		{"IPCP before authentication", access.PAP, IPCP, "01 01 0004", Unexpected},
	} {
		w := newWorld(1)
		s := alone(w, r.method)
		openLCP(t, s)
		testkit.FatalIf(t, s.auth == nil, "%s: not at authentication", r.name)
		text := strings.ReplaceAll(r.packet, "ID", hex2(s.auth.identifier))
		text = strings.ReplaceAll(text, "OTHER", hex2(s.auth.identifier+1))
		testkit.Equal(t, s.Receive(r.protocol, octets(t, text)), r.want, "%s", r.name)
		testkit.Equal(t, len(s.asked), 0, "%s: credentials", r.name)
	}
}

// A wrong password of MS-CHAPv2 gets another challenge, and the right one is let in then.
func TestMSCHAPv2Again(t *testing.T) {
	w := newWorld(1)
	s, c := pair(w, serverConfig(access.MSCHAPv2), clientConfig(access.MSCHAPv2))
	var failure []byte
	s.mangle = func(protocol uint16, b []byte) []byte {
		if protocol == CHAP && b[0] == chapFailure {
			failure = bytes.Clone(b) // as a client does that asks its user again
			text := string(b[4:])
			at := strings.Index(text, "C=") + 2
			again := append(append([]byte{chapChallenge, b[1] + 1, 0, 21, 16}, octets(t,
				text[at:at+32])...), b[4+len(text):]...)
			return again
		}
		return b
	}
	c.config.Password = "wrong"
	first := true
	c.mangle = func(protocol uint16, b []byte) []byte {
		if protocol == CHAP && first {
			first = false
			c.config.Password = "secret"
		}
		return b
	}
	w.run(t, 20*time.Second)
	testkit.ErrorIf(t, !strings.HasPrefix(string(failure[4:]), "E=691 R=1 C="), "failure %q", failure)
	testkit.Equal(t, s.network, both, "families: %s", s.ended)
	testkit.Equal(t, len(s.asked), 2, "attempts")
	testkit.ErrorIf(t, bytes.Equal(s.asked[0].Challenge, s.asked[1].Challenge), "the same challenge twice")
}

// Peers that change passwords are refused.
func TestChangePassword(t *testing.T) {
	w := newWorld(1)
	s := alone(w, access.MSCHAPv2)
	openLCP(t, s)
	s.Receive(CHAP, append([]byte{chapChange, s.auth.identifier + 1, 0x02, 0x4a}, make([]byte, 582)...))
	said := s.said(CHAP)
	testkit.ErrorIf(t, !strings.HasPrefix(string(octets(t, said[len(said)-1])[4:]), "E=709 R=0"), "%s", said)
	w.run(t, time.Minute)
	testkit.Equal(t, s.cause, access.UserError, "cause: %s", s.ended)
}

// RFC 1661 §6.1: a peer takes no more than its MRU, of an Echo-Reply either.
func TestEchoReplyFitsThePeer(t *testing.T) {
	w := newWorld(1)
	s := alone(w)
	s.Receive(LCP, octets(t, "01 01 0008 0104 0240")) // MRU 576
	request := octets(t, s.said(LCP)[0])
	request[0] = configureAck
	s.Receive(LCP, request)
	s.Receive(LCP, append(octets(t, "09 05 03e8 00000007"), make([]byte, 1000-8)...))
	said := s.said(LCP)
	reply := octets(t, said[len(said)-1])
	testkit.Equal(t, len(reply), 576, "octets")
	testkit.Equal(t, hex.EncodeToString(reply[:4]), "0a050240", "head")
}

// An address that the peer always insists on: IPCP is given up, IPv6 continues.
func TestInsists(t *testing.T) {
	for _, answers := range []bool{false, true} { // our requests of IPCP
		w := newWorld(1)
		s := alone(w)
		s.sends = func(protocol uint16, b []byte) {
			if b[0] == configureRequest && (protocol != IPCP || answers) {
				ack := append([]byte{configureAck}, b[1:]...)
				w.after(time.Millisecond, func() { s.Receive(protocol, ack) })
			}
		}
		openLCP(t, s)
		s.Receive(IPv6CP, octets(t, "01 01 000e 010a 0000000000000005"))
		for i := range 600 {
			s.Receive(IPCP, []byte{1, byte(i), 0, 10, 3, 6, 192, 168, 1, 1})
			w.run(t, w.now+time.Second)
		}
		testkit.Equal(t, s.network, access.Families{V6: true}, "families: %s", s.ended)
		testkit.Equal(t, s.ended, "", "end")
		said := s.sent(IPCP, configureNak) + s.sent(IPCP, configureReject) + s.sent(LCP, protocolReject)
		testkit.ErrorIf(t, said > 2*maxRounds, "%d answers", said)
	}
}

// Cheap customers' routers.
func TestCheapPeers(t *testing.T) {
	t.Run("IPv6CP is rejected", func(t *testing.T) {
		w := newWorld(1)
		s, c := pair(w, serverConfig(access.PAP), clientConfig(access.PAP))
		c.config.Families = access.Families{V4: true}
		w.run(t, time.Minute)
		testkit.Equal(t, s.network, access.Families{V4: true}, "families: %s", s.ended)
		testkit.Equal(t, s.sent(IPv6CP, configureRequest), 1, "requests of IPv6CP")
	})
	t.Run("IPv6CP is never answered", func(t *testing.T) {
		w := newWorld(1)
		s, c := pair(w, serverConfig(access.PAP), clientConfig(access.PAP))
		c.config.Families = access.Families{V4: true}
		c.mangle = func(protocol uint16, b []byte) []byte {
			if protocol == LCP && b[0] == protocolReject {
				return nil
			}
			return b
		}
		w.run(t, 5*time.Minute)
		testkit.Equal(t, s.network, access.Families{V4: true}, "families: %s", s.ended)
		testkit.Equal(t, s.sent(IPv6CP, configureRequest), 10, "requests of IPv6CP")
	})
	t.Run("an address that the peer insists on", func(t *testing.T) {
		w := newWorld(1)
		s := alone(w)
		openLCP(t, s)
		for i := range 40 {
			s.Receive(IPCP, []byte{1, byte(i), 0, 10, 3, 6, 192, 168, 1, 1})
		}
		testkit.Equal(t, s.sent(IPCP, configureNak), 5, "naks")
		testkit.Equal(t, s.sent(IPCP, configureReject), 19, "rejects")
		w.run(t, 5*time.Minute)
		testkit.ErrorIf(t, s.ended == "" || s.network.V4, "the link goes on: %v", s.network)
	})
	t.Run("negotiation without an end", func(t *testing.T) {
		w := newWorld(1)
		s := alone(w)
		for i := 0; s.ended == "" && i < 1000; i++ {
			said := s.said(LCP)
			last := octets(t, said[len(said)-1])
			if last[0] == terminateRequest {
				s.Receive(LCP, []byte{terminateAck, last[1], 0, 4})
				continue
			}
			s.Receive(LCP, append([]byte{configureNak, last[1], 0, 10, 5, 6, 1, 2, 3}, byte(i)))
		}
		testkit.Equal(t, s.ended, "negotiation has no end", "end")
		testkit.ErrorIf(t, len(w.log) > 40, "%d packets", len(w.log))
	})
	t.Run("a line that is looped back", func(t *testing.T) {
		w := newWorld(1)
		s := newEnd(w, "server")
		s.peer = s
		c := serverConfig(access.PAP)
		s.Start(s, s.with(c), Server, 1492)
		w.run(t, time.Minute)
		testkit.ErrorIf(t, !strings.Contains(s.ended, "looped"), "ended by %q", s.ended)
		testkit.ErrorIf(t, len(w.log) > 100, "%d packets", len(w.log))
	})
	t.Run("nobody there", func(t *testing.T) {
		w := newWorld(1)
		s := alone(w, access.PAP)
		w.run(t, 10*time.Minute)
		testkit.Equal(t, s.ended, "the peer does not answer", "end")
		testkit.Equal(t, len(w.log), 10, "packets")
	})
	t.Run("LCP, and then nothing", func(t *testing.T) {
		w := newWorld(1)
		s := alone(w, access.CHAP)
		openLCP(t, s)
		w.run(t, 10*time.Minute)
		testkit.Equal(t, s.ended, "no authentication within 30s", "end")
	})
}

// For any input a link stays within its bounds: it answers at most as often as it is asked, and it ends.
func FuzzLink(f *testing.F) {
	for seed := range uint64(4) {
		w := newWorld(seed)
		m := access.Method(seed)
		methods := []access.Method{m}
		if m == access.None {
			methods = nil
		}
		var story []byte
		s, c := pair(w, serverConfig(methods...), clientConfig(methods...))
		c.mangle = func(protocol uint16, b []byte) []byte {
			story = append(append(story, byte(protocol>>8), byte(protocol), byte(len(b))), b...)
			return b
		}
		w.run(f, 10*time.Second)
		_ = s
		f.Add(uint8(seed), story)
	}
	f.Fuzz(func(t *testing.T, method uint8, story []byte) {
		w := newWorld(1)
		var methods []access.Method
		if m := access.Method(method % 4); m != access.None {
			methods = []access.Method{m}
		}
		s := alone(w, methods...)
		packets := 0
		for len(story) >= 3 {
			n := min(int(story[2]), len(story)-3)
			b := story[3 : 3+n]
			if len(b) > 1 && method&4 != 0 { // as if in answer to the last one
				b = bytes.Clone(b)
				b[1] = s.layers[nLCP].id
			}
			s.Receive(uint16(story[0])<<8|uint16(story[1]), b)
			story = story[3+n:]
			packets++
			w.run(t, w.now+100*time.Millisecond)
		}
		testkit.ErrorIf(t, len(w.log) > 40+6*packets, "%d packets in, %d out", packets, len(w.log))
		w.run(t, w.now+10*time.Minute)
		testkit.ErrorIf(t, s.ended == "" && s.network == access.Families{} && s.layers[nLCP].state != opened,
			"it neither ends nor opens")
	})
}
