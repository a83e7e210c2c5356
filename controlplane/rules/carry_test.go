// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// A URR continues in another data plane with the rest.
func TestURRGoesOn(t *testing.T) {
	set := testSettings()
	s, _, refused := Establish(set, giveNothing{}, request(1, "10.45.0.5"))
	testkit.ErrorIf(t, refused != nil, "%v", refused)
	u := &s.URR[0]
	*u.Method, *u.Triggers = 3, api.URRVolth|api.URRTimth|api.URRVolqu|api.URREvequ
	u.VolumeThreshold = &pfcp.Volumes{Total: ptr(uint64(1000)), Uplink: ptr(uint64(40))}
	u.TimeThreshold, u.TimeQuota = ptr(20*time.Second), ptr(100*time.Second)
	u.VolumeQuota, u.EventQuota = &pfcp.Volumes{Total: ptr(uint64(5000)), Uplink: ptr(uint64(0))}, ptr(uint32(7))
	check := func(step string, changed bool, m Used, threshold, quota [3]uint64, seconds, left, events uint32) {
		t.Helper()
		testkit.Equal(t, u.Resume(&m), changed, "%s: changed", step)
		c, bad := Compile(Context{Set: set}, s)
		testkit.ErrorIf(t, bad != nil, "%v", bad)
		var head api.Session
		rest, err := api.ReadRow(c.Body, &head)
		testkit.Must(t, err)
		_, rest, _ = api.TakeRows[api.PDR](rest)
		_, rest, _ = api.TakeRows[api.FAR](rest)
		_, rest, _ = api.TakeRows[api.QER](rest)
		list, _, err := api.TakeRows[api.URR](rest)
		testkit.Must(t, err)
		is := &list[0]
		testkit.ErrorIf(t, is.VolumeThreshold != threshold || is.VolumeQuota != quota ||
			is.TimeThreshold != seconds || is.TimeQuota != left || is.EventQuota != events,
			"%s: %+v", step, is)
	}
	total := func(left uint64) [3]uint64 { return [3]uint64{left, NoQuota, NoQuota} }
	none := total(NoQuota)
	check("nothing was used", false, Used{Left: none}, [3]uint64{1000, 40}, [3]uint64{5000}, 20, 100, 7)
	check("some", true, Used{Bytes: [2]uint64{30, 100}, Seconds: 5, Spent: 15, Left: total(4000)},
		[3]uint64{870, 10}, [3]uint64{4000}, 15, 85, 7)
	check("more than there is", true,
		Used{Bytes: [2]uint64{30, 1000}, Seconds: 50, Spent: 500, Left: total(0)},
		[3]uint64{1, 1}, [3]uint64{1}, 1, 1, 7)
	check("all of it, unheard", false, Used{Exhausted: 1, Left: total(0)}, [3]uint64{1, 1}, [3]uint64{1}, 1, 1, 7)
	check("all of it", true, Used{Exhausted: 1, Heard: 1, Left: total(0)}, [3]uint64{1, 1}, [3]uint64{}, 1, 0, 0)
	u.update(&pfcp.UpdateURR{VolumeThreshold: &pfcp.Volumes{Total: ptr(uint64(500))}})
	check("given again", false, Used{Left: none}, [3]uint64{500}, [3]uint64{}, 20, 0, 0)
}
