// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"isthmus/controlplane/config"
	"isthmus/controlplane/testkit"
)

const pairs = "../../deploy/pairs/"

func read(t *testing.T, file string) (text string, v any) {
	t.Helper()
	data, err := os.ReadFile(file)
	testkit.Must(t, err)
	testkit.Must(t, yaml.Unmarshal(data, &v))
	return string(data), v
}

// at follows keys of mappings; of a list it is all that its elements have there.
func at(v any, keys ...string) []any {
	if list, ok := v.([]any); ok {
		var all []any
		for _, e := range list {
			all = append(all, at(e, keys...)...)
		}
		return all
	}
	if len(keys) == 0 {
		return []any{v}
	}
	m, _ := v.(map[string]any)
	return at(m[keys[0]], keys[1:]...)
}

// within fails unless all that we print stands in theirs. One value may stand for a list of one.
func within(t *testing.T, path string, ours, theirs any) {
	t.Helper()
	switch v := ours.(type) {
	case map[string]any:
		m, _ := theirs.(map[string]any)
		for key := range v {
			within(t, path+"."+key, v[key], m[key])
		}
	case []any:
		if _, list := theirs.([]any); !list {
			theirs = []any{theirs}
		}
		testkit.Equal(t, len(theirs.([]any)), len(v), "%s", path)
		for i := range min(len(v), len(theirs.([]any))) {
			within(t, fmt.Sprint(path, i), v[i], theirs.([]any)[i])
		}
	default:
		testkit.Equal(t, fmt.Sprint(theirs), fmt.Sprint(ours), "%s", path)
	}
}

// slicesOf are the S-NSSAIs of a list: free5GC writes the SD as hexadecimal text, UERANSIM as a number.
func slicesOf(t *testing.T, list []any) string {
	t.Helper()
	var all []string
	for _, e := range list {
		m, _ := e.(map[string]any)
		sd := m["sd"]
		if text, ok := sd.(string); ok {
			n, err := strconv.ParseInt(text, 16, 32)
			testkit.Must(t, err)
			sd = int(n)
		}
		all = append(all, fmt.Sprint(m["sst"], " ", sd))
	}
	return strings.Join(all, ", ")
}

// Our file and those of the cores and of UERANSIM beside it speak of the same addresses, DNNs, pools and slices, and
// the tutorials have our file.
func TestPairs(t *testing.T) {
	for core, smf := range map[string]struct {
		file   string
		slices []string // where it has them
	}{
		"open5gs": {"smf.yaml", []string{"smf", "info", "s_nssai"}},
		"free5gc": {"smfcfg.yaml", []string{"configuration", "snssaiInfos", "sNssai"}},
	} {
		folder := pairs + core + "/"
		text, _ := read(t, folder+"isthmus.yaml")
		c, err := config.Parse("isthmus.yaml", []byte(text))
		testkit.Must(t, err)
		var ours any
		testkit.Must(t, yaml.Unmarshal([]byte(printed(t, core, c)), &ours))
		_, theirs := read(t, folder+smf.file)
		within(t, core, ours, theirs)

		_, gnb := read(t, folder+"gnb.yaml")
		_, ue := read(t, folder+"ue.yaml")
		address := netip.MustParseAddr(fmt.Sprint(at(gnb, "gtpIp")[0]))
		n3 := c.Interfaces[0].Addresses[0]
		onLink := n3.Contains(address) && n3.Addr() != address
		testkit.Equal(t, onLink, true, "%s: the gNB's %s on N3", core, address)
		for what, pair := range map[string][2]any{
			"gNB": {at(ue, "gnbSearchList"), at(gnb, "linkIp")},
			"DNN": {at(ue, "sessions", "apn"), []any{c.Instances[1].Name}},
			"MCC": {at(ue, "mcc"), at(gnb, "mcc")}, "MNC": {at(ue, "mnc"), at(gnb, "mnc")},
		} {
			testkit.Equal(t, fmt.Sprint(pair[0]), fmt.Sprint(pair[1]), "%s: %s", core, what)
		}
		want := slicesOf(t, at(theirs, smf.slices...))
		for _, list := range [][]any{at(gnb, "slices"), at(ue, "sessions", "slice"),
			at(ue, "configured-nssai")} {
			testkit.Equal(t, slicesOf(t, list), want, "%s: slices", core)
		}
		page, err := os.ReadFile("../../docs/tutorials/upf-" + core + ".md")
		testkit.Must(t, err)
		_, body, _ := strings.Cut(text, "\nengine:")
		testkit.Equal(t, strings.Contains(string(page), "title=\"isthmus.yaml\"\nengine:"+body+"```"), true,
			"%s: isthmus.yaml of the tutorial", core)
	}
}
