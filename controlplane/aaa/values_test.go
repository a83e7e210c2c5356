// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"testing"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

// Values sent by number equal FreeRADIUS' dictionaries.
func TestValues(t *testing.T) {
	values := testkit.RADIUSValues(t)
	for name, value := range map[string]uint32{
		"Acct-Status-Type Start": uint32(Start), "Acct-Status-Type Stop": uint32(Stop),
		"Acct-Status-Type Interim-Update": uint32(Interim), "Acct-Status-Type Accounting-On": uint32(On),
		"Acct-Status-Type Accounting-Off": uint32(Off),
		"Acct-Authentic RADIUS":           authenticRADIUS, "Acct-Authentic Local": authenticLocal,
		"Service-Type Framed-User": serviceFramed,
		"Framed-Protocol PPP":      protocolPPP,
		"NAS-Port-Type Ethernet":   portEthernet, "NAS-Port-Type PPPoEoE": portPPPoE,
		"NAS-Port-Type PPPoEoVLAN": portPPPoEVLAN, "NAS-Port-Type PPPoEoQinQ": portPPPoEQinQ,
		"Acct-Terminate-Cause User-Request":        uint32(access.UserRequest),
		"Acct-Terminate-Cause Lost-Carrier":        uint32(access.LostCarrier),
		"Acct-Terminate-Cause Lost-Service":        uint32(access.LostService),
		"Acct-Terminate-Cause Idle-Timeout":        uint32(access.IdleTimeout),
		"Acct-Terminate-Cause Session-Timeout":     uint32(access.SessionTimeout),
		"Acct-Terminate-Cause Admin-Reset":         uint32(access.AdminReset),
		"Acct-Terminate-Cause Admin-Reboot":        uint32(access.AdminReboot),
		"Acct-Terminate-Cause Port-Error":          uint32(access.PortError),
		"Acct-Terminate-Cause NAS-Error":           uint32(access.NASError),
		"Acct-Terminate-Cause NAS-Request":         uint32(access.NASRequest),
		"Acct-Terminate-Cause NAS-Reboot":          uint32(access.NASReboot),
		"Acct-Terminate-Cause Service-Unavailable": uint32(access.ServiceUnavailable),
		"Acct-Terminate-Cause User-Error":          uint32(access.UserError),
	} {
		got, there := values[name]
		testkit.ErrorIf(t, !there || got != value, "%s: %d, not FreeRADIUS' %d", name, value, got)
	}
}
