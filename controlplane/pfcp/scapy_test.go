// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"bytes"
	"encoding/hex"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

// Messages of scapy are decoded with the same meaning.
func TestMessagesMadeByScapy(t *testing.T) {
	const python = "/usr/bin/python3" // Debian's, which has scapy
	if err := exec.Command(python, "-c", "import scapy.contrib.pfcp").Run(); err != nil {
		t.Skip("scapy is not installed")
	}
	command := exec.Command(python, "testdata/scapy_pfcp.py")
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("scapy: %v %s", err, complaints.Bytes())
	}
	want := map[string]Message{
		"heartbeat":     &HeartbeatRequest{Recovery: sampleTime},
		"setup":         &AssociationSetupRequest{Node: nodeName, Recovery: sampleTime, Features: CPLoad | CPOvrl},
		"release":       &AssociationReleaseRequest{Node: nodeName},
		"establishment": wantedOfScapy(),
		"modification": &SessionModificationRequest{RemovePDR: []uint16{3},
			UpdateFAR: []UpdateFAR{{ID: 2, Action: ptr(ActionBuffer | ActionNotify)}}, QueryURR: []uint32{1}},
		"deletion": &SessionDeletionRequest{},
		"report":   &SessionReportResponse{Cause: CauseAccepted},
	}
	for line := range strings.Lines(string(out)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		b, err := hex.DecodeString(text)
		testkit.Must(t, err)
		h, got, err := Decode(b)
		if err != nil || !reflect.DeepEqual(got, want[name]) {
			t.Errorf("%s: %v\ngot  %+v\nwant %+v", name, err, got, want[name])
		}
		testkit.ErrorIf(t, h.Sequence == 0 || name == "establishment" && h.Priority != 7,
			"%s: header %+v", name, h)
		delete(want, name)
	}
	for name := range want {
		t.Errorf("scapy built no %s", name)
	}
}

func wantedOfScapy() Message {
	return &SessionEstablishmentRequest{Node: nodeName, CP: FSEID{SEID: 5, IPv4: v4a}, PDR: []CreatePDR{{ID: 1,
		Precedence: 255,
		PDI: PDI{Source: Access, LocalFTEID: &FTEID{Choose: true, WantIPv4: true}, NetworkInstance: "access",
			UEIP: []UEIP{{IPv4: v4b}}, SDF: []SDFFilter{{Flow: "permit out ip from any to assigned"}}, QFI: []uint8{9}},
		OuterHeaderRemoval: ptr(uint8(0)), FAR: ptr(uint32(1)), URR: []uint32{1}, QER: []uint32{1}},
		{ID: 2, Precedence: 255, PDI: PDI{Source: Core, NetworkInstance: "internet.example",
			UEIP: []UEIP{{IPv4: v4b, Destination: true}}}, FAR: ptr(uint32(2))}},
		FAR: []CreateFAR{{ID: 1, Action: ActionForward, Forwarding: &Forwarding{Destination: ptr(Core)}},
			{ID: 2, Action: ActionForward, Forwarding: &Forwarding{Destination: ptr(Access),
				OuterHeader: &OuterHeader{Description: OuterGTPUIPv4, TEID: 0x1234, IPv4: v4b}}}},
		QER: []CreateQER{{ID: 1, GateUplink: ptr(uint8(0)), GateDownlink: ptr(uint8(1)), MBRUplink: ptr(uint64(1000)),
			MBRDownlink: ptr(uint64(2000))}},
		URR: []CreateURR{{ID: 1, Method: ptr(uint8(2)), Triggers: ptr(uint32(2)),
			VolumeThreshold: &Volumes{Total: ptr(uint64(1 << 30))}}},
		PDNType: ptr(uint8(1)), APN: "internet"}
}

// Heartbeats keep the time in any second.
func TestRecoveryIsWholeSeconds(t *testing.T) {
	_, m, err := Decode(mustEncode(t, Header{}, &HeartbeatResponse{Recovery: sampleTime.Add(999 * time.Millisecond)}))
	testkit.ErrorIf(t, err != nil || !m.(*HeartbeatResponse).Recovery.Equal(sampleTime), "%+v %v", m, err)
}
