// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// The project's fixed fields stand at the top of each result of any kind.
func TestFixedFields(t *testing.T) {
	const fixed = "profile link workers seconds mpps gbps_l2 gbps_l1 ticks_per_packet uplink downlink " +
		"floor_ticks_per_packet own_ticks_per_packet tsc_hz loss_ratio offered received dropped latency_us " +
		"checked wrong peers subscribers flows downlink_rules uplink_rules load_seconds cpu cpus huge_pages " +
		"steal_ratio versions command wrong_frame paper_mpps_per_core paper_cycles_per_packet"
	for name, result := range map[string]any{
		"synth": &Result{WrongFrame: "gtpu.teid"}, "link": &LinkResult{},
	} {
		text, err := json.Marshal(result)
		testkit.Must(t, err)
		var got map[string]json.RawMessage
		testkit.Must(t, json.Unmarshal(text, &got))
		for _, field := range strings.Fields(fixed) {
			testkit.ErrorIf(t, got[field] == nil, "%s: no %s", name, field)
		}
	}
	const direction = "mpps ticks_per_packet floor_ticks_per_packet own_ticks_per_packet frame_bytes nodes"
	for name, one := range map[string]any{"synth": Direction{}, "link": LinkDirection{}} {
		text, err := json.Marshal(one)
		testkit.Must(t, err)
		for _, field := range strings.Fields(direction) {
			testkit.ErrorIf(t, !strings.Contains(string(text), `"`+field+`":`),
				"%s: no %s in %s", name, field, text)
		}
	}
}
