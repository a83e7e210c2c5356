// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"strings"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/testkit"
)

// `show port` has a word for each steering, a number for one of a later data plane, and both of a port whose device
// went away.
func TestSteeringOfPorts(t *testing.T) {
	s := dptest.Start(t)
	want := []string{"none", "software", "rss", "rss-inner", "flow-rules", "5"}
	ports := make([]api.PortRow, len(want))
	for i := range ports {
		ports[i] = api.PortRow{Role: api.RoleCore, Up: 1, Steering: uint32(i)}
		put(ports[i].Name[:], "p"+want[i])
	}
	gone := len(ports) - 2
	ports[gone].Up, ports[gone].Gone = 0, 1
	s.SetTable(api.TablePort, api.AppendRows(nil, ports))
	c, err := dp.Dial(t.Context(), s.Path)
	testkit.Must(t, err)
	defer c.Close()
	table := Lookup("port")
	rows, err := table.Get(t.Context(), c, control, "", 0)
	testkit.Must(t, err)
	data, err := json.Marshal(rows)
	testkit.Must(t, err)
	var text strings.Builder
	testkit.Must(t, table.Print(&text, data))
	for i, line := range strings.Split(strings.TrimSpace(text.String()), "\n")[1:] {
		has := " " + strings.Join(strings.Fields(line), " ") + " "
		testkit.ErrorIf(t, !strings.Contains(has, " "+want[i]+" "), "steering %d: %q", i, line)
		testkit.Equal(t, strings.Contains(has, " gone "), i == gone, "it is gone: %s", line)
	}
	testkit.Equal(t, strings.Count(text.String(), "\n"), len(want)+1, "lines")
}
