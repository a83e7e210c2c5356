// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/testkit"
)

// manySessions fills a data plane with n4.0, n4.1 …, every second of which has the peer's TEID 7.
func manySessions(t testing.TB, n int) *dp.Client {
	s := dptest.Start(t)
	var all []byte
	for i := range n {
		row := api.SessionRow{SEID: uint64(i), TEIDPeer: uint32(7 * (i % 2)), UplinkPackets: uint64(i) << 53}
		put(row.Name[:], fmt.Sprintf("n4.%d", i))
		all = api.AppendRow(all, &row)
	}
	s.SetTable(api.TableSession, all)
	c, err := dp.Dial(t.Context(), s.Path)
	testkit.Must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestSelect(t *testing.T) {
	c := manySessions(t, 12)
	for _, test := range []struct {
		query string
		want  string // SEIDs, and the next
	}{
		{"", "0 1 2 3 4 5 6 7 8 9 10 11, 0"},
		{"limit=3", "0 1 2, 3"},
		{"limit=3&after=9", "9 10 11, 0"},
		{"limit=3&after=10", "10 11, 0"},
		{"after=12", ", 0"},
		{"after=1000000&limit=4294967295", ", 0"},
		{"name=n4.1", "1, 0"},
		{"name=n4.1*", "1 10 11, 0"},
		{"name=*1", "1 11, 0"},
		{"name=*4.1*&limit=2", "1 10, 2"},
		{"name=*4.1*&limit=2&after=2", "11, 0"},
		{"name=!n4.1*&seid=<4", "0 2 3, 0"},
		{"teid_peer=7&seid=>3&seid=<8", "5 7, 0"},
		{"seid=!3&seid=<5", "0 1 2 4, 0"},
		{fmt.Sprintf("uplink_packets=%d", uint64(3)<<53), "3, 0"},
		{"seid=>=10", "10 11, 0"},
		{"seid=<=1", "0 1, 0"},
		{"teid_peer=0x7&seid=<4", "1 3, 0"},
		{"dnn=", "0 1 2 3 4 5 6 7 8 9 10 11, 0"},
		{"name=*", "0 1 2 3 4 5 6 7 8 9 10 11, 0"},
	} {
		v, err := url.ParseQuery(test.query)
		testkit.Must(t, err)
		q, err := ParseQuery(v)
		testkit.Must(t, err)
		got, next, err := Lookup("session").Select(t.Context(), c, control, q)
		testkit.Must(t, err)
		var seids []string
		for _, s := range got.([]Session) {
			seids = append(seids, fmt.Sprint(s.SEID))
		}
		testkit.Equal(t, fmt.Sprintf("%s, %d", strings.Join(seids, " "), next.Rows), test.want, "%s", test.query)
	}
}

// Pages have each row that stays once, whatever comes and goes before, between and behind them.
func TestPagesWhileRowsChange(t *testing.T) {
	s := dptest.Start(t)
	c, err := dp.Dial(t.Context(), s.Path)
	testkit.Must(t, err)
	defer c.Close()
	have := func(names ...int) {
		var all []byte
		for _, n := range names {
			row := api.SessionRow{SEID: uint64(n)}
			put(row.Name[:], fmt.Sprintf("n4.%d", n))
			all = api.AppendRow(all, &row)
		}
		s.SetTable(api.TableSession, all)
	}
	after := ""
	page := func(where, want string) {
		t.Helper()
		v, err := url.ParseQuery("limit=2&after=" + after + where)
		testkit.Must(t, err)
		q, err := ParseQuery(v)
		testkit.Must(t, err)
		got, next, err := Lookup("session").Select(t.Context(), c, control, q)
		testkit.Must(t, err)
		text := ""
		for _, s := range got.([]Session) {
			text += fmt.Sprint(s.SEID, " ")
		}
		after = next.String()
		testkit.Equal(t, text, want, "page before %s", after)
	}
	have(1, 2, 3, 4, 5, 6, 7, 8)
	page("", "1 2 ")
	have(2, 3, 4, 5, 6, 7, 8) // one went before
	page("", "3 4 ")
	have(90, 91, 92, 93, 94, 95, 2, 3, 4, 5, 6, 7, 8) // many came before
	page("", "5 6 ")
	have(2, 3, 4, 5, 7, 8, 9) // the row itself went: by the count, of which rows before were many
	after = strings.Replace(after, "11-", "4-", 1)
	page("", "7 8 ")
	page("", "9 ")
	testkit.Equal(t, after, "0", "after the last")
	// The same with conditions.
	have(1, 2, 3, 4, 5, 6)
	after = ""
	page("&seid=>1", "2 3 ")
	have(80, 3, 4, 5, 6)
	page("&seid=>1", "4 5 ")
	page("&seid=>1", "6 ")
}

func TestAddressesAndPrefixes(t *testing.T) {
	for _, test := range []struct {
		value, field string
		want         bool
	}{
		{"10.1.0.0/16", "10.1.2.3", true},
		{"10.1.0.0/16", "10.2.2.3", false},
		{"10.1.0.0/16", "10.1.0.0/16", true}, // a row of prefixes
		{"10.1.0.0/16", "", false},
		{"2001:db8::/32", "2001:db8::1", true},
		{"2001:0db8:0::1", "2001:db8::1", true},
		{"10.1.2.3", "10.1.2.30", false},
	} {
		testkit.Equal(t, pattern(test.value)(test.field), test.want, "%s in %s", test.field, test.value)
	}
}

func TestSelectRefuses(t *testing.T) {
	c := manySessions(t, 2)
	for _, test := range []struct{ table, query, want string }{
		{"session", "limit=x", "no number"},
		{"session", "limit=-1", "no number"},
		{"session", "after=1000001", "more than 1000000 rows"},
		{"session", "after=2-x", "is none of ours"},
		{"session", "nonsense=1", "there is no field \"nonsense\"; there are name seid"},
		{"session", "seid=abc", "\"abc\" is no number"},
		{"session", "name=<3", "= and ! alone"},
		{"port", "up=maybe", "true or false"},
		{"port", "up=>true", "true or false"},
		{"urr", "bytes=1", "cannot be chosen by it"},
		{"total", "in=1", "no rows to choose from"},
		{"graph", "after=1", "no rows to choose from"},
		{"session", "name=" + strings.Repeat("x", 129), "more than 128 bytes"},
		{"session", strings.Repeat("x", 129) + "=1", "more than 128 bytes"},
		{"session", strings.Repeat("seid=>1&", 9), "more than 8 conditions"},
	} {
		v, err := url.ParseQuery(test.query)
		testkit.Must(t, err)
		q, err := ParseQuery(v)
		if err == nil {
			_, _, err = Lookup(test.table).Select(t.Context(), c, control, q)
		}
		testkit.Refused(t, err, test.want)
	}
}

// Answer is what tables return, and each row can be chosen by some field.
func TestAnswers(t *testing.T) {
	s := dptest.Start(t)
	rows(s)
	c, err := dp.Dial(t.Context(), s.Path)
	testkit.Must(t, err)
	defer c.Close()
	for _, n := range Tables {
		v, err := n.Get(t.Context(), c, control, "", 0)
		testkit.Must(t, err)
		is := reflect.TypeOf(v)
		if is.Kind() == reflect.Pointer {
			is = is.Elem()
		}
		testkit.ErrorIf(t, is != n.Answer, "%s is %v, not %v", n.Name, is, n.Answer)
		testkit.ErrorIf(t, is.Kind() == reflect.Slice && len(n.Fields()) < 2, "%s: %v", n.Name, n.Fields())
	}
}

// FuzzQuery: no query makes a panic, or chooses a row that is none of the table.
func FuzzQuery(f *testing.F) {
	c := manySessions(f, 3)
	f.Add("name=n4.*&seid=>1&limit=2&after=1")
	f.Add("seid=!18446744073709551615&uplink_packets=<1e308&name=**")
	f.Add("up=true&key=%00&limit=4294967295&after=4294967295")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q, err := ParseQuery(v)
		if err != nil {
			return
		}
		testkit.FatalIf(t, len(q.Where) > maxTerms, "%d conditions", len(q.Where))
		got, next, err := Lookup("session").Select(t.Context(), c, control, q)
		if err != nil {
			return
		}
		n := len(got.([]Session))
		testkit.FatalIf(t, n > 3 || q.Limit > 0 && n > int(q.Limit) || next.Rows > 3, "%d rows, next %d", n,
			next)
	})
}
