// SPDX-License-Identifier: Apache-2.0

package view

import (
	"reflect"
	"slices"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/testkit"
)

// ones sets every number in a row of the data plane to 1, and every byte of text to "1".
func ones(v reflect.Value) {
	if a, ok := v.Addr().Interface().(*api.Address); ok {
		*a = api.Address{Family: 4, Prefix: 24, Bytes: [16]byte{192, 0, 2}}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			ones(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			ones(v.Index(i))
		}
		if v.Type().Elem().Kind() == reflect.Uint8 && v.Len() > 0 {
			for i := range v.Len() {
				v.Index(i).SetUint('1')
			}
		}
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	default:
		v.SetUint(1)
	}
}

// filled fills a V from a row in which nothing is zero, and fails for each field that stays zero but those that
// `finish` or the control plane makes.
func filled[R, V any](t *testing.T, made ...string) {
	t.Helper()
	var r R
	var v V
	ones(reflect.ValueOf(&r).Elem())
	filler[R, V]()(&r, &v)
	fields := reflect.ValueOf(v)
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		testkit.ErrorIf(t, fields.Field(i).IsZero() != slices.Contains(made, name),
			"%T.%s: %v, made elsewhere: %v", v, name, fields.Field(i), slices.Contains(made, name))
	}
}

// Every field has its namesake in the row of the data plane.
func TestFieldsAreCopied(t *testing.T) {
	filled[api.PortRow, Port](t)
	filled[api.GTSMRow, GTSM](t)
	filled[api.MSSRow, MSS](t)
	filled[api.ChannelRow, Channel](t)
	filled[api.SessionRow, Session](t, "Association", "CPSEID", "DNN", "User", "SEIDHex",
		"CPSEIDHex", "SchedulerPipe")
	filled[api.RuleRow, Rule](t, "Action", "QERs", "URRs", "QFI", "Gate", "MBR")
	filled[api.URRRow, URR](t, "Bytes", "Packets", "QuotaLeft")
	filled[api.InstanceRow, Instance](t)
	filled[api.NATRow, NAT](t)
	filled[api.NPTv6Row, NPTv6](t)
	filled[api.NATBlockRow, NATBlock](t, "First", "Last")
	filled[api.TrafficRow, Traffic](t, "QFI")
	filled[api.EventRow, Event](t, "Name")
	filled[api.RouteRow, Route](t)
	filled[api.NeighbourRow, Neighbour](t)
	filled[api.ACLRow, ACL](t, "Default")
	filled[api.SchedulerRow, Scheduler](t, "Pipe")
	filled[api.DropRow, Reason](t)
	filled[api.WorkerRow, Worker](t)
	filled[api.PathRow, Path](t)
	filled[api.SynthRow, Stream](t)
}
