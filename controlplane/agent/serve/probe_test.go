// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/api"
	"isthmus/controlplane/testkit"
)

func TestWorkersThatStandStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Probes{}
		rows := []api.WorkerRow{{Worker: 0, CPU: 2, Walks: 5}, {Worker: 1, CPU: 3, Walks: 5}}
		for i, want := range []string{"", "", "worker 1, CPU 3, has not walked for 6s"} {
			rows[0].Walks++
			testkit.Equal(t, p.workers(1, rows).why, want, "look %d", i)
			time.Sleep(3 * time.Second)
		}
		testkit.Equal(t, p.workers(2, rows).why, "", "another data plane")
		rows[1].Walks++
		testkit.Equal(t, p.workers(2, rows).why, "", "it walks again")
	})
}

func TestPortsOfProbes(t *testing.T) {
	port := func(name string, up, gone uint32) (r api.PortRow) {
		copy(r.Name[:], name)
		r.Up, r.Gone = up, gone
		return r
	}
	for _, test := range []struct {
		rows []api.PortRow
		want string
	}{
		{nil, ""},
		{[]api.PortRow{port("n3", 1, 0), port("n6", 0, 0)}, ""},
		{[]api.PortRow{port("n3", 0, 0), port("n6", 0, 0)}, "no port has a link"},
		{[]api.PortRow{port("n3", 1, 0), port("n6", 1, 1)}, "the device of port n6 is gone"},
	} {
		testkit.Equal(t, links(test.rows).why, test.want, "%v", test.rows)
	}
}

func TestAnswersOfProbes(t *testing.T) {
	for _, test := range []struct {
		list []condition
		code int
		want string
	}{
		{[]condition{{name: "control"}}, 200, "[+]control ok\ncheck passed\n"},
		{[]condition{{name: "control"}, {"ports", "no port has a link"}}, 503,
			"[+]control ok\n[-]ports failed: no port has a link\ncheck failed\n"},
	} {
		w := httptest.NewRecorder()
		tell(w, test.list)
		testkit.Equal(t, w.Code, test.code, "status")
		testkit.Equal(t, w.Body.String(), test.want, "text")
	}
}
