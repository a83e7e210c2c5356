// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"testing"

	"isthmus/controlplane/testkit"
)

// Everything that we send is decoded by tshark without a remark.
func TestTsharkReadsEverySample(t *testing.T) {
	all := samples()
	var messages [][]byte
	for i, m := range all {
		messages = append(messages, mustEncode(t, Header{SEID: 77, Sequence: uint32(i + 1),
			Priority: uint8(i % 2 * 5)}, m))
	}
	packets := testkit.Dissect(t, Port, messages)
	testkit.FatalIf(t, len(packets) != len(messages), "%d packets of %d", len(packets), len(messages))
	for i, layers := range packets {
		if layers["pfcp"] == nil {
			t.Errorf("%T: no PFCP", all[i])
		}
		for _, r := range testkit.Remarks("", layers) {
			t.Errorf("%d %T: %s", i, all[i], r)
		}
	}
}
