// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// everyRule is a session with two of each kind of rule, so that references have an alternative.
func everyRule() *pfcp.SessionEstablishmentRequest {
	r := request(1, "10.45.0.5")
	r.PDR[0].PDI.SDF = []pfcp.SDFFilter{{Flow: "permit out 17 from any to assigned", HasID: true, ID: 1}}
	// A PDR of a traffic endpoint, whose FAR sends back to where the endpoint's traffic comes from.
	r.PDR = append(r.PDR, pfcp.CreatePDR{ID: 3, Precedence: 7, FAR: ptr(uint32(1)), OuterHeaderRemoval: ptr(uint8(0)),
		PDI: pfcp.PDI{Source: pfcp.Access, TrafficEndpoint: ptr(uint8(1))}})
	r.FAR[1].Duplicating = &pfcp.Duplicating{Destination: pfcp.Access,
		OuterHeader: &pfcp.OuterHeader{Description: pfcp.OuterGTPUIPv4, TEID: 5,
			IPv4: addr("10.1.0.98")}}
	r.FAR[1].Action |= pfcp.ActionDuplicate
	r.FAR[1].BAR = ptr(uint8(1))
	r.QER = append(r.QER, pfcp.CreateQER{ID: 2, GateUplink: ptr(uint8(0)), GateDownlink: ptr(uint8(0))})
	r.URR = append(r.URR, pfcp.CreateURR{ID: 2, Method: ptr(uint8(2)), Triggers: ptr(uint32(0))})
	r.BAR = []pfcp.CreateBAR{{ID: 1}, {ID: 2, SuggestedPackets: ptr(uint8(9))}}
	r.Endpoint = []pfcp.CreateTrafficEndpoint{
		{ID: 1, LocalFTEID: &pfcp.FTEID{TEID: 0x51, IPv4: addr("10.1.0.1")}, NetworkInstance: "access"},
		{ID: 2, LocalFTEID: &pfcp.FTEID{TEID: 0x52, IPv4: addr("10.1.0.2")}, NetworkInstance: "access"},
	}
	return r
}

// another value of a field's type: absent becomes present, a reference to the first one to the second.
func another(v reflect.Value) reflect.Value {
	n := reflect.New(v.Type()).Elem()
	n.Set(v)
	switch v.Interface().(type) {
	case time.Time:
		return reflect.ValueOf(time.Unix(4e9, 0))
	case time.Duration:
		return reflect.ValueOf(v.Interface().(time.Duration) + 7*time.Second)
	}
	switch v.Kind() {
	case reflect.Pointer:
		n = reflect.New(v.Type().Elem())
		if !v.IsNil() {
			n.Elem().Set(v.Elem())
		}
		n.Elem().Set(another(n.Elem()))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n.SetUint(3 - min(v.Uint(), 2)) // 2 for 1, 3 for 0
	case reflect.Bool:
		n.SetBool(!v.Bool())
	case reflect.String:
		n.SetString("other")
	case reflect.Slice:
		n.Set(reflect.MakeSlice(v.Type(), 1, 1))
		n.Index(0).Set(another(n.Index(0)))
	}
	return n
}

// The rules of a session, by the name of their type.
var rules = map[string]func(*pfcp.SessionEstablishmentRequest) any{
	"CreatePDR":             func(r *pfcp.SessionEstablishmentRequest) any { return &r.PDR[0] },
	"PDI":                   func(r *pfcp.SessionEstablishmentRequest) any { return &r.PDR[0].PDI },
	"CreateFAR":             func(r *pfcp.SessionEstablishmentRequest) any { return &r.FAR[1] },
	"Forwarding":            func(r *pfcp.SessionEstablishmentRequest) any { return r.FAR[1].Forwarding },
	"Duplicating":           func(r *pfcp.SessionEstablishmentRequest) any { return r.FAR[1].Duplicating },
	"CreateQER":             func(r *pfcp.SessionEstablishmentRequest) any { return &r.QER[0] },
	"CreateURR":             func(r *pfcp.SessionEstablishmentRequest) any { return &r.URR[0] },
	"CreateBAR":             func(r *pfcp.SessionEstablishmentRequest) any { return &r.BAR[0] },
	"CreateTrafficEndpoint": func(r *pfcp.SessionEstablishmentRequest) any { return &r.Endpoint[0] },
}

// Values for fields that need more than their type shows.
var suitable = map[string]any{
	"PDI.Source": pfcp.Core, "PDI.LocalFTEID": &pfcp.FTEID{TEID: 0x61, IPv4: addr("10.1.0.1")},
	"PDI.NetworkInstance": "access",
	"PDI.UEIP":            []pfcp.UEIP{{IPv4: addr("10.45.0.5"), IPv6: netip.MustParsePrefix("2001:db8:1:5::/64")}},
	"PDI.SDF":             []pfcp.SDFFilter{{Flow: "permit out 6 from any to assigned"}},
	"PDI.FramedRoutes":    []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}, "PDI.TrafficEndpoint": ptr(uint8(2)),
	"CreatePDR.FAR": ptr(uint32(2)), "CreatePDR.URR": []uint32{2}, "CreatePDR.QER": []uint32{2},
	"CreatePDR.OuterHeaderRemoval": (*uint8)(nil), "CreateFAR.Action": pfcp.ActionDrop, "CreateFAR.BAR": ptr(uint8(2)),
	"Forwarding.Destination": ptr(pfcp.CPSide), "Forwarding.NetworkInstance": ptr("n9"),
	"Forwarding.LinkedEndpoint": ptr(uint8(2)),
	"Forwarding.OuterHeader": &pfcp.OuterHeader{Description: pfcp.OuterGTPUIPv4, TEID: 0x77,
		IPv4: addr("10.1.0.99")},
	"Forwarding.Redirect":     &pfcp.Redirect{Type: 2, Address: "http://portal.example/"},
	"Duplicating.Destination": pfcp.SGiLAN,
	"Duplicating.OuterHeader": &pfcp.OuterHeader{Description: pfcp.OuterGTPUIPv4, TEID: 6, IPv4: addr("10.1.0.98")},
	"CreateQER.GateUplink":    ptr(uint8(1)), "CreateQER.GateDownlink": ptr(uint8(1)), "CreateQER.QFI": ptr(uint8(5)),
	"CreateQER.GBRUplink": ptr(uint64(500)), "CreateQER.GBRDownlink": ptr(uint64(500)),
	"CreateQER.AveragingWindow": ptr(uint32(1000)),
	"CreateURR.Method":          ptr(uint8(3)), "CreateURR.VolumeThreshold": &pfcp.Volumes{Uplink: ptr(uint64(1))},
	"CreateURR.MonitoringTime": ptr(time.Unix(4e9, 0)), "CreateURR.QuotaFAR": ptr(uint32(2)),
	"CreateURR.VolumeQuota":               &pfcp.Volumes{Total: ptr(uint64(1))},
	"CreateURR.SubsequentVolumeThreshold": &pfcp.Volumes{Total: ptr(uint64(1))}, "CreateURR.Linked": []uint32{2},
	"CreateTrafficEndpoint.LocalFTEID":   &pfcp.FTEID{TEID: 0x53, IPv4: addr("10.1.0.1")},
	"CreateTrafficEndpoint.UEIP":         []pfcp.UEIP{{IPv4: addr("10.45.0.5")}},
	"CreateTrafficEndpoint.FramedRoutes": []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")},
}

// Fields that only inform, or act outside of this test.
var tells = map[string]string{
	"PDI.InterfaceType":                     "for measurements by kinds of interfaces, which there are none of",
	"CreateTrafficEndpoint.NetworkInstance": "the one of the F-TEID's address counts",
	"Forwarding.SendEndMarker":              "a tunnel that is new has no old one (TestEveryFlagIsServedOrRefused)",
	"Forwarding.DropBuffered":               "nothing waits yet (TestEveryFlagIsServedOrRefused)",
	"CreateQER.Correlation":                 "the plane gives out the meters (TestSharedMeters)",
	"PDI.NetworkInstance":                   "the one of the F-TEID's address counts",
}

// Every field of a rule from a CP function is served or refused: another value gives another data plane session, or the
// cause for it.
func TestEveryFieldHasAnEffect(t *testing.T) {
	base, refusal := outcomeOf(everyRule(), nil)
	testkit.FatalIf(t, refusal != nil, "%v", refusal)
	for name, at := range rules {
		fields := reflect.TypeOf(at(everyRule())).Elem()
		for i := range fields.NumField() {
			field, of := name+"."+fields.Field(i).Name, fields.Field(i).Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			if rules[of.Name()] != nil || fields.Field(i).Name == "ID" {
				continue // its fields are tested alone; references are at the id
			}
			r := everyRule()
			to := reflect.ValueOf(at(r)).Elem().Field(i)
			if v, given := suitable[field]; given {
				to.Set(reflect.ValueOf(v))
			} else {
				to.Set(another(to))
			}
			got, refusal := outcomeOf(r, nil)
			switch told := tells[field] != ""; {
			case refusal != nil && refusal.Cause != pfcp.CauseServiceNotSupported &&
				refusal.Cause != pfcp.CauseInvalidForwarding:
				t.Errorf("%s: %v: another value is needed", field, refusal)
			case refusal == nil && got == base && !told:
				t.Errorf("%s is accepted and ignored", field)
			case told && (refusal != nil || got != base):
				t.Errorf("%s is not as it is told here: %v", field, refusal)
			}
		}
	}
}
