// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"slices"
	"testing"

	"isthmus/controlplane/testkit"
)

// knows: how a table treats an IE.
func (g *group[T]) knows(ie uint16) (read, refused bool) { return g.index[ie] != 0, g.refused[ie] != 0 }

// tables are the messages of CP functions and their grouped IEs, with every IE of TS 29.244 Release 16. `told` IEs only
// inform: they request nothing and are not needed. Types above 271 are of later releases; a receiver ignores unknown
// ones (TS 29.244 §7.6).
var tables = []struct {
	name string
	at   interface{ knows(uint16) (bool, bool) }
	all  []uint16
	told map[uint16]string
}{
	{"Heartbeat Request", heartbeatRequest, []uint16{96, 192}, nil},
	{"PFD Management Request", pfdManagementRequest, []uint16{58, 60},
		map[uint16]string{60: "the association says who asks"}},
	{"Application ID's PFDs", applicationPFDs, []uint16{24, 59}, nil},
	{"PFD Context", pfdContext, []uint16{61}, nil},
	{"Association Setup Request", associationSetupRequest, []uint16{60, 96, 89, 116, 178, 180, 183, 203, 233, 238, 253,
		259},
		map[uint16]string{116: "of UP functions", 203: "the response has no TSCU", 238: "the response has no GPQM",
			253: "a name beside the Node ID", 259: "of UP functions"}},
	{"Session Retention Information", retention, []uint16{185}, nil},
	{"UE IP Address Pool Information", pool, []uint16{177, 22, 257, 258},
		map[uint16]string{257: "of UP functions", 258: "of UP functions"}},
	{"Association Update Request", associationUpdateRequest,
		[]uint16{60, 89, 111, 112, 116, 162, 178, 203, 233, 238, 267},
		map[uint16]string{116: "of UP functions", 162: "of UP functions", 203: "there is no TSCU",
			233: "of UP functions",
			238: "there is no GPQM", 267: "of UP functions"}},
	{"Association Release Request", associationReleaseRequest, []uint16{60}, nil},
	{"Node Report Response", nodeReportResponse, []uint16{60, 19, 40}, nil},
	{"Session Set Deletion Request", sessionSetDeletionRequest, []uint16{60, 65}, nil},
	{"Session Establishment Request", sessionEstablishmentRequest,
		[]uint16{60, 57, 1, 3, 6, 7, 85, 127, 113, 65, 117, 141, 152,
			159, 165, 186, 194, 212, 220, 96, 257, 261}, nil},
	{"Create PDR", createPDR, []uint16{56, 29, 2, 95, 108, 81, 109, 106, 163, 164, 170, 179, 188, 177, 265, 271}, nil},
	{"PDI", pdi, []uint16{20, 21, 22, 255, 93, 131, 23, 24, 142, 132, 124, 153, 154, 155, 160, 188}, nil},
	{"Create FAR", createFAR, []uint16{108, 44, 4, 5, 88, 270}, nil},
	{"Forwarding Parameters", createForwarding, []uint16{42, 22, 38, 84, 30, 41, 98, 131, 137, 160, 232}, nil},
	{"Duplicating Parameters", duplicating, []uint16{42, 84, 30, 41}, nil},
	{"Create URR", createURR, []uint16{81, 62, 37, 64, 31, 73, 149, 148, 32, 74, 71, 72, 181, 33, 34, 35, 121, 122, 151,
		150, 36,
		82, 100, 115, 118, 108, 146, 147, 182, 24, 23}, nil}, // 24 and 23: exempted from the quota action (Release 17)
	{"Create QER", createQER, []uint16{109, 28, 25, 26, 27, 94, 97, 124, 123, 158, 157, 193, 251}, nil},
	{"Create BAR", createBAR, []uint16{88, 46, 140, 249}, nil},
	{"Create Traffic Endpoint", createEndpoint, []uint16{131, 21, 22, 255, 93, 142, 153, 154, 155, 124, 160, 188},
		map[uint16]string{160: "for measurements by kinds of interfaces, which there are none of"}},
	{"Session Modification Request", sessionModificationRequest,
		[]uint16{57, 15, 16, 17, 18, 87, 130, 1, 3, 6, 7, 85, 127, 9, 10,
			13, 14, 86, 129, 49, 77, 65, 117, 125, 152, 168, 169, 165, 60, 199, 211, 212, 213, 220, 254, 219, 263, 257},
		nil},
	{"Update PDR", updatePDR, []uint16{56, 95, 29, 2, 108, 81, 109, 106, 107, 163, 164, 188, 271}, nil},
	{"Update FAR", updateFAR, []uint16{108, 44, 11, 105, 270, 88}, nil},
	{"Update Forwarding Parameters", updateForwarding,
		[]uint16{42, 22, 38, 84, 30, 41, 98, 49, 131, 160, 232}, nil},
	{"Update Duplicating Parameters", duplicating, []uint16{42, 84, 30, 41}, nil},
	{"Update URR", updateURR, []uint16{81, 62, 37, 64, 31, 73, 149, 148, 32, 74, 71, 72, 181, 33, 34, 35, 121, 122, 151,
		150, 36,
		82, 100, 115, 118, 108, 146, 147, 182, 24, 23}, nil},
	{"Update QER", updateQER, []uint16{109, 28, 25, 26, 27, 94, 97, 124, 123, 158, 157, 251}, nil},
	{"Session Deletion Request", sessionDeletionRequest, nil, nil},
	{"Session Report Response", sessionReportResponse, []uint16{19, 40, 12, 50, 57, 21, 178},
		map[uint16]string{21: "for packets that the CP function asked for, which no rule can"}},
	{"Update BAR in a response", createBAR, []uint16{88, 46, 47, 48, 140}, nil},
}

// Every IE of the standard in messages of CP functions is read, refused with the cause, or only informs. A read IE is a
// field of the message (TestEverySampleDecodesToItself) and has an effect (TestEveryFieldHasAnEffect of package
// session).
func TestEveryIEIsReadOrRefused(t *testing.T) {
	for _, table := range tables {
		for _, ie := range table.all {
			read, refused := table.at.knows(ie)
			if told := table.told[ie] != ""; !read && !refused && !told {
				t.Errorf("%s: IE %d is taken and ignored", table.name, ie)
			} else if told && (read || refused) {
				t.Errorf("%s: IE %d is not as it is told here", table.name, ie)
			}
		}
		for ie := range table.told {
			testkit.ErrorIf(t, !slices.Contains(table.all, ie),
				"%s: IE %d is told and not there", table.name, ie)
		}
	}
}
