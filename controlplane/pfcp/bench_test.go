// SPDX-License-Identifier: Apache-2.0

package pfcp

import "testing"

// The session of the speed rows: 2 PDR, 2 FAR, 1 QER, 1 URR.
func BenchmarkDecodeEstablishment(b *testing.B) {
	packet := mustEncode(b, Header{}, establishment())
	b.SetBytes(int64(len(packet)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Decode(packet); err != nil {
			b.Fatal(err)
		}
	}
}

func response() *SessionEstablishmentResponse {
	return &SessionEstablishmentResponse{Node: node4, Cause: CauseAccepted, UP: FSEID{SEID: 1, IPv4: v4a},
		Created: []CreatedPDR{{ID: 1, LocalFTEID: &FTEID{TEID: 1, IPv4: v4a}}}}
}

func BenchmarkEncodeResponse(b *testing.B) {
	m := response()
	buffer := make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Append(buffer, Header{SEID: 1, Sequence: 7}, m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeEstablishment(b *testing.B) {
	m := establishment()
	buffer := make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Append(buffer, Header{Sequence: 7}, m); err != nil {
			b.Fatal(err)
		}
	}
}
