// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/testkit"
)

// The flood's frames are what their protocols ask for: else they would be dropped before the host path.
func TestFloodFrames(t *testing.T) {
	for _, s := range floodStreams() {
		var body api.Synth
		_, err := api.ReadRow(s.Body, &body)
		testkit.Must(t, err)
		frame := body.In.Bytes[:body.In.Length]
		testkit.Equal(t, api.CString(body.Port[:]), floodPort, "port")
		testkit.Equal(t, binary.BigEndian.Uint16(frame[16:]), 0x8100, "inner tag")
		switch binary.BigEndian.Uint16(frame[20:]) {
		case 0x8863:
			testkit.ErrorIf(t, len(frame) != 22+6+4, "PADI of %d bytes", len(frame))
		case 0x0800:
			sum := uint32(0)
			for i := 22; i < 42; i += 2 {
				sum += uint32(binary.BigEndian.Uint16(frame[i:]))
			}
			testkit.Equal(t, sum&0xffff+sum>>16, 0xffff, "IP header checksum and carry")
			testkit.Equal(t, int(binary.BigEndian.Uint16(frame[24:])), 20+8+16, "IP length")
			testkit.ErrorIf(t, floodFrame < 22+20+8+16, "the datagram does not fit")
		default:
			t.Errorf("%s: a frame of another protocol", s.Name)
		}
	}
}

func TestSumOf(t *testing.T) {
	var v any
	testkit.Must(t, json.Unmarshal([]byte(`[{"session-down":2,"other":5},{"a":{"session-down":3}},7]`), &v))
	testkit.Equal(t, sumOf(v, "session-down"), 5, "sessions down")
}
