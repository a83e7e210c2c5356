// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

const sessions = `[
 {"name":"home-1","ue_ip4":"10.1.2.3","ue_ip6":"2001:db8::1","dnn":"internet",
  "teid_local":16,"uplink_bytes":10,"quota":{"total":null,"uplink":7},"up":true},
 {"name":"home-2","ue_ip4":"10.1.2.20","ue_ip6":"","dnn":"ims",
  "teid_local":17,"uplink_bytes":9000,"quota":{"total":5,"uplink":7},"up":false},
 {"name":"n4.1","ue_ip4":"10.2.0.1","ue_ip6":"","dnn":"Internet",
  "teid_local":18,"uplink_bytes":200,"quota":{"total":6,"uplink":7},"up":true}]`

func names(rows []Row) string {
	var list []string
	for _, r := range rows {
		list = append(list, r.Text("name"))
	}
	return strings.Join(list, " ")
}

func rowsOf(t testing.TB, text string) []Row {
	t.Helper()
	rows, err := Rows([]byte(text))
	testkit.Must(t, err)
	return rows
}

func TestSort(t *testing.T) {
	testkit.Refused(t, Sort(rowsOf(t, sessions), "colour"), `no field "colour"; there are dnn, name`)
	for field, want := range map[string]string{
		"uplink_bytes": "home-2 n4.1 home-1", "-uplink_bytes": "home-1 n4.1 home-2",
		"ue_ip4": "home-1 home-2 n4.1",
		"-name":  "n4.1 home-2 home-1",
	} {
		rows := rowsOf(t, sessions)
		testkit.Must(t, Sort(rows, field))
		testkit.Equal(t, names(rows), want, "%s", field)
	}
}

// Chosen rows are printed unchanged: the same fields, in their order.
func TestRowsKeepTheirText(t *testing.T) {
	rows := rowsOf(t, sessions)
	text := string(JSON(rows[1:2]))
	testkit.ErrorIf(t, !strings.HasPrefix(text, `[{"name":"home-2","ue_ip4":"10.1.2.20","ue_ip6":""`), "%s", text)
	testkit.Equal(t, string(JSON(nil)), "[]", "none")
}

func TestRates(t *testing.T) {
	before := rowsOf(t, `[{"name":"a","rx_packets":100,"rx_bytes":1000},{"name":"b","rx_packets":50,"rx_bytes":5}]`)
	after := rowsOf(t, `[{"name":"b","rx_packets":10,"rx_bytes":6},{"name":"a","rx_packets":2100,"rx_bytes":251000},
		{"name":"new","rx_packets":1,"rx_bytes":1}]`)
	rates := Rates("port", before, after, 2*time.Second)
	testkit.Must(t, SortRates("port", rates, "rx_packets"))
	titles, right, cells := Table("port", rates)
	testkit.Equal(t, strings.Join(titles, "|"), "NAME|RX PACKETS/S|RX BIT/S", "titles")
	testkit.Equal(t, fmt.Sprint(right), "[false true true]", "right")
	testkit.Equal(t, fmt.Sprint(cells), "[[a 1k 1M] [b  4] [new  ]]", "b began anew, new has no past")
	report, err := json.Marshal(Report("port", rates[:2], 2*time.Second))
	testkit.Must(t, err)
	testkit.ErrorIf(t, !strings.Contains(string(report), `"rx_packets_per_second":1000`) ||
		!strings.Contains(string(report), `"rx_packets_per_second":null`), "%s", report)
}

func TestGraphAndTotal(t *testing.T) {
	rows := rowsOf(t, `{"nodes":[{"name":"port-rx","packets":3}],"edges":[]}`)
	testkit.Equal(t, names(rows), "port-rx", "nodes")
	rows = rowsOf(t, `{"in":5,"holders":[{"name":"x"}]}`)
	testkit.Equal(t, rows[0].Text("in"), "5", "total")
	_, err := Rows([]byte(`"x"`))
	testkit.ErrorIf(t, err == nil, "a text is no table")
}

func TestSI(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 7: "7", 1.234: "1.23", 12.34: "12.3", 999.4: "999",
		999.9: "1.00k",
		1000:  "1k", 1234: "1.23k", 45.6e6: "45.6M", 1e10: "10G", 2.5e13: "25T"} {
		testkit.Equal(t, SI(v), want, "%g", v)
	}
	testkit.Equal(t, RateText("x", math.NaN()), "", "none yet")
}

// For any answer: refused, or rows that stay JSON.
func FuzzRows(f *testing.F) {
	f.Add("name", sessions)
	f.Add("name", `[{"name":null}]`)
	f.Fuzz(func(t *testing.T, field, data string) {
		rows, err := Rows([]byte(data))
		if err != nil {
			return
		}
		if len(rows) > 0 {
			_ = Sort(rows, field)
		}
		if !json.Valid(JSON(rows)) {
			t.Error("no JSON")
		}
	})
}
