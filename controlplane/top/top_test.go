// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"isthmus/controlplane/testkit"
	"isthmus/controlplane/watch"
)

// recorded is a sample in testdata.
func recorded(t testing.TB, name string) *Sample {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	testkit.Must(t, err)
	s := &Sample{Tables: map[string][]watch.Row{}}
	testkit.Must(t, json.Unmarshal(data, s))
	var tables struct {
		Tables map[string]json.RawMessage `json:"tables"`
	}
	testkit.Must(t, json.Unmarshal(data, &tables))
	for table, text := range tables.Tables {
		rows, err := watch.Rows(text)
		testkit.Must(t, err)
		s.Tables[table] = rows
	}
	return s
}

func model(t testing.TB, keys ...string) *Model {
	t.Helper()
	m := NewModel(time.Second)
	m.Update(recorded(t, "before.json"))
	m.Update(recorded(t, "after.json"))
	for _, key := range keys {
		if quit, _ := m.Key(key); quit {
			t.Fatalf("%s ends it", key)
		}
	}
	return m
}

// The screens as they are in testdata: what a person sees after these keys.
func TestScreens(t *testing.T) {
	for _, test := range []struct {
		name          string
		width, height int
		keys          []string
	}{
		{"overview-80x24", 80, 24, nil},
		{"overview-160x50", 160, 50, nil},
		{"ports-80x24", 80, 24, []string{"2", "s", "s"}},
		{"drops-80x24", 80, 24, []string{"tab", "tab", "p"}},
		{"sessions-120x20", 120, 20, []string{"4"}},
		{"workers-80x24", 80, 24, []string{"5"}},
		{"peers-100x20", 100, 20, []string{"6"}},
		{"nodes-80x12", 80, 12, []string{"7", "r", "j"}},
		{"help-80x24", 80, 24, []string{"?"}},
		{"tiny-20x5", 20, 5, nil},
		{"homes-80x24", 80, 24, []string{"8"}},
		{"homes-by-packets-60x24", 60, 24, []string{"8", "s", "s", "s"}},
		{"aaa-80x24", 80, 24, []string{"9"}},
	} {
		lines := model(t, test.keys...).Screen(test.width, test.height, false)
		for i, line := range lines {
			testkit.ErrorIf(t, utf8.RuneCountInString(line) > test.width, "%s: line %d is too wide",
				test.name, i)
			testkit.ErrorIf(t, strings.Contains(line, "\x1b"), "%s: line %d speaks to the terminal",
				test.name, i)
		}
		testkit.Equal(t, len(lines), test.height, "%s: lines", test.name)
		var text strings.Builder
		for _, line := range lines {
			text.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		path := filepath.Join("testdata", test.name+".txt")
		testkit.Golden(t, path, text.String())
	}
}

// A column by which rows are sorted is visible at any width.
func TestSortedColumnIsSeen(t *testing.T) {
	for i := range looks {
		for k := range max(1, len(looks[i].sorts)) {
			m := model(t, strconv.Itoa(i+1))
			for range k {
				m.Key("s")
			}
			all := strings.Join(m.Screen(60, 40, false), "\n")
			if i == 0 || looks[i].sorts[k] == "" {
				continue
			}
			title := watch.Title(looks[i].tables[0], strings.TrimPrefix(looks[i].sorts[k], "-"))
			testkit.ErrorIf(t, !strings.Contains(all, title), "%s by %s: no %q in\n%s",
				looks[i].title, looks[i].sorts[k], title, all)
		}
	}
}

// Rows that a screen has no room for are named on it.
func TestNothingIsHiddenInSilence(t *testing.T) {
	all := strings.Join(model(t).Screen(80, 24, false), "\n")
	testkit.ErrorIf(t, !strings.Contains(all, "no room for GTP-U peers (1)"),
		"nothing of the GTP-U peers:\n%s", all)
	testkit.ErrorIf(t, !strings.Contains(all, "ports (2 columns more)"), "columns are missing in silence:\n%s", all)
	all = strings.Join(model(t).Screen(200, 60, false), "\n")
	testkit.ErrorIf(t, strings.Contains(all, "no room") || strings.Contains(all, "columns more"), "%s", all)
}

// A packet that has done its work, such as the answer to an echo of ours, is no loss and no alarm.
func TestServedPacketsAreNoDrops(t *testing.T) {
	m := model(t)
	all := strings.Join(m.Screen(80, 24, true), "\n")
	testkit.ErrorIf(t, strings.Contains(all, "lcp-echo-heard"), "an answer is a drop that rises:\n%s", all)
	m = NewModel(time.Second)
	for _, n := range []string{"10", "60"} {
		rows := map[string]string{"total": `{"in":1,"dropped":` + n + `}`,
			"drop": `[{"name":"lcp-echo-heard","packets":` + n + `}]`}
		s := &Sample{Tables: map[string][]watch.Row{}, Status: Status{DataPlane: "ready"}}
		s.Time = time.Unix(map[string]int64{"10": 0, "60": 1}[n], 0)
		for table, text := range rows {
			list, err := watch.Rows([]byte(text))
			testkit.Must(t, err)
			s.Tables[table] = list
		}
		m.Update(s)
	}
	all = strings.Join(m.Screen(80, 24, true), "\n")
	testkit.ErrorIf(t, strings.Contains(all, alarm), "an answer is an alarm:\n%q", all)
	m.Key("3")
	all = strings.Join(m.Screen(80, 24, false), "\n")
	testkit.ErrorIf(t, !strings.Contains(all, "lcp-echo-heard"), "it is not in the list of all:\n%s", all)
}

func TestColours(t *testing.T) {
	all := strings.Join(model(t).Screen(80, 24, true), "\n")
	testkit.ErrorIf(t, !strings.Contains(all, alarm+"dropped 40/s"), "a drop is no alarm:\n%q", all)
	testkit.ErrorIf(t, strings.Count(all, reset) == 0, "nothing ends a colour")
}

func TestAway(t *testing.T) {
	m := model(t)
	m.Update(&Sample{Err: errors.New("no control plane at /run/x")})
	all := strings.Join(m.Screen(80, 24, false), "\n")
	testkit.ErrorIf(t, !strings.Contains(all, "no control plane at /run/x"), "%s", all)
	m.Update(&Sample{Status: Status{DataPlane: "away", Why: "it ended"}, Tables: map[string][]watch.Row{}})
	all = strings.Join(m.Screen(80, 24, false), "\n")
	testkit.ErrorIf(t, !strings.Contains(all, "data plane away  it ended"), "%s", all)
	for _, key := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		m.Key(key)
		m.Screen(80, 24, false)
	}
}

func TestKeys(t *testing.T) {
	m := model(t)
	testkit.ErrorIf(t, strings.Contains(fmt.Sprint(m.Tables()), "session"), "sessions are asked for unseen")
	_, again := m.Key("4")
	testkit.ErrorIf(t, !again || !strings.Contains(fmt.Sprint(m.Tables()), "session"), "sessions are not asked for")
	for range 3 {
		m.Key("+")
	}
	testkit.Equal(t, m.period, 250*time.Millisecond, "the shortest")
	for range 9 {
		m.Key("-")
	}
	testkit.Equal(t, m.period, 8*time.Second, "the longest")
	m.Key("pgdown")
	m.Screen(80, 24, false)
	testkit.Equal(t, m.scroll, 0, "nothing to scroll to")
	m.Key("h")
	if quit, _ := m.Key("q"); quit {
		t.Error("q ends the help first")
	}
	for _, key := range []string{"q", "esc", "ctrl-c"} {
		quit, _ := m.Key(key)
		testkit.ErrorIf(t, !quit, "%s does not end it", key)
	}
}

// A day of samples does not grow.
func TestBounded(t *testing.T) {
	m := NewModel(time.Second)
	s := [2]*Sample{recorded(t, "before.json"), recorded(t, "after.json")}
	for i := range 2000 {
		m.Update(s[i%2])
		m.Screen(80, 24, true)
	}
	testkit.ErrorIf(t, len(m.history) > historyLength || cap(m.history) > 4*historyLength, "%d", cap(m.history))
}

func TestTake(t *testing.T) {
	get := func(_ context.Context, path string, query url.Values) ([]byte, error) {
		switch path {
		case "/v1/status":
			return []byte(`{"data_plane":"ready"}`), nil
		case "/v1/show/session":
			return []byte(`[{"name":"` + query.Get("limit") + `"}]`), nil
		}
		return nil, errors.New("refused")
	}
	s := Take(context.Background(), get, []string{"session", "port"})
	testkit.Equal(t, s.Tables["session"][0].Text("name"), "20000", "limit")
	testkit.ErrorIf(t, s.Tables["port"] != nil || s.Err != nil, "%v", s)
}
