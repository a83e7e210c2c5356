// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

func mustEncode(t testing.TB, h Header, m Message) []byte {
	t.Helper()
	b, err := Encode(h, m)
	testkit.FatalIf(t, err != nil, "%T: %v", m, err)
	return b
}

// What the samples are on the wire, for readers of other implementations: test/gopfcp.
func TestSamplesOnTheWire(t *testing.T) {
	var text strings.Builder
	for i, m := range samples() {
		h := Header{Type: m.MessageType(), Sequence: uint32(i), HasSEID: m.MessageType().ofSession()}
		if h.HasSEID {
			h.SEID = 1 << 40
		}
		fmt.Fprintf(&text, "%x\n", mustEncode(t, h, m))
	}
	testkit.Golden(t, "testdata/samples.txt", text.String())
}

func TestEverySampleDecodesToItself(t *testing.T) {
	seen := map[MessageType]bool{}
	for i, m := range samples() {
		h := Header{Type: m.MessageType(), Sequence: uint32(maxSequence - i), Priority: uint8(i % 16)}
		if h.HasSEID = h.Type.ofSession(); h.HasSEID {
			h.SEID = 1<<63 + uint64(i)
		}
		got, back, err := Decode(mustEncode(t, h, m))
		if err != nil {
			t.Errorf("%d %T: %v", i, m, err)
			continue
		}
		testkit.ErrorIf(t, got != h, "%d %T: header %+v, want %+v", i, m, got, h)
		testkit.ErrorIf(t, !reflect.DeepEqual(m, back), "%d %T:\nsent %+v\ngot  %+v", i, m, m, back)
		seen[h.Type] = true
	}
	for typ := range messages {
		decode := messages[typ].decode
		testkit.ErrorIf(t, decode != nil && !seen[MessageType(typ)], "no sample of message type %d", typ)
	}
}

func TestEncodeRefusesWhatTheWireCannotSay(t *testing.T) {
	for name, m := range map[string]Message{
		"rate above 40 bits": &SessionModificationRequest{CreateQER: []CreateQER{{MBRUplink: ptr(uint64(1 << 40))}}},
		"IPv6 for IPv4":      &SessionEstablishmentRequest{CP: FSEID{IPv4: v6a}},
		"no node id":         &AssociationReleaseRequest{},
		"time out of range":  &SessionEstablishmentRequest{Node: node4, Inactivity: 1 << 62},
		"message too long":   &SessionSetDeletionRequest{Node: node4, FQCSID: manyCSIDs(6000)},
		"control characters": &PFDManagementRequest{Applications: []ApplicationPFDs{{Application: "a\nb"}}},
		"S-NSSAI":            &SessionEstablishmentRequest{Node: node4, SNSSAI: "x"},
	} {
		if _, err := Encode(Header{}, m); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Encode(Header{Sequence: maxSequence + 1}, &HeartbeatRequest{}); err == nil {
		t.Error("sequence number of 25 bits: no error")
	}
}

func manyCSIDs(n int) (list [][]byte) {
	for range n {
		list = append(list, csid)
	}
	return list
}

func TestTimers(t *testing.T) {
	for want, d := range map[byte]time.Duration{0: 0, 1: time.Second, 30: time.Minute, 31: 62 * time.Second,
		0x22: 63 * time.Second,
		0x3f: 31 * time.Minute, 0x44: 32 * time.Minute, 0x9f: 310 * time.Hour, 0xe0: Forever} {
		testkit.Equal(t, timerValue(d), want, "%s", d)
		back, _ := readTimer([]byte{want})
		testkit.ErrorIf(t, back < d, "%s came back as %s", d, back)
	}
}

func TestTimesAfter2036(t *testing.T) {
	for _, want := range []time.Time{time.Unix(0, 0).UTC(), sampleTime, time.Unix(1<<31+1<<30, 0).UTC()} {
		_, m, err := Decode(mustEncode(t, Header{}, &HeartbeatRequest{Recovery: want}))
		testkit.ErrorIf(t, err != nil || !m.(*HeartbeatRequest).Recovery.Equal(want),
			"%s: %+v %v", want, m, err)
	}
}

func TestRespondAnswersEveryRequest(t *testing.T) {
	e := &Error{Cause: CauseMandatoryIEMissing, Offending: ieNodeID}
	for typ := range MessageType(messageTypes) {
		m := Respond(typ, e, node4)
		want := typ.Request() && messages[typ].decode != nil && typ != HeartbeatRequestType
		testkit.ErrorIf(t, (m != nil) != want, "type %d: %T", typ, m)
		if m == nil {
			continue
		}
		testkit.ErrorIf(t, m.MessageType() != typ+1, "type %d is answered with %d", typ, m.MessageType())
		_, _, err := Decode(mustEncode(t, Header{}, m))
		testkit.ErrorIf(t, err != nil, "type %d: the answer is refused: %v", typ, err)
	}
}
