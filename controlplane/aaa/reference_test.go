// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"isthmus/controlplane/radius"
	"isthmus/controlplane/testkit"
)

// fate is what becomes of what cannot be used.
func fate[V any](r rule[V]) string {
	switch {
	case r.no != "":
		return "refused: " + r.no
	case r.use == nil:
		return ""
	case r.tunes:
		return "left out"
	case r.first:
		return "refused; a second one is left out"
	}
	return "refused"
}

// attributeTable has a row for all names with the same text.
type attributeTable struct {
	rows  [][]string
	names map[string]*[]string
}

func addRule[V any](t *testing.T, a *attributeTable, dialect, name string, r rule[V]) {
	t.Helper()
	testkit.ErrorIf(t, (r.doc == "") == (r.no == ""), "%s: doc says what is used of it, or no why it is refused", name)
	doc := r.doc
	if r.no != "" {
		doc = "Nothing."
	}
	row := []string{name, dialect, doc, fate(r)}
	key := strings.Join(row[1:], "|")
	if a.names[key] == nil {
		a.names[key] = &[]string{}
		a.rows = append(a.rows, row)
	}
	*a.names[key] = append(*a.names[key], name)
}

// sorted is by dialect, then by name.
func (a *attributeTable) sorted(dialects []string) [][]string {
	for _, row := range a.rows {
		list := *a.names[strings.Join(row[1:], "|")]
		slices.Sort(list)
		row[0] = strings.Join(list, ", ")
	}
	slices.SortFunc(a.rows, func(x, y []string) int {
		if by := slices.Index(dialects, x[1]) - slices.Index(dialects, y[1]); by != 0 {
			return by
		}
		return strings.Compare(x[0], y[0])
	})
	return a.rows
}

func TestReferenceRADIUS(t *testing.T) {
	vendors := map[uint32]string{0: "standard", 9: "Cisco", 311: "Microsoft", 4874: "Juniper", 14122: "WISPr",
		14988: "Mikrotik"}
	table := attributeTable{names: map[string]*[]string{}}
	for a, r := range fields {
		addRule(t, &table, vendors[a.Vendor()], a.String(), r)
	}
	for name, r := range words {
		addRule(t, &table, "Cisco", "`"+name+"`", r)
	}
	for key, r := range settings {
		addRule(t, &table, "ours", "`subscriber:"+key+"`", r)
	}
	var causes [][]string
	for c := radius.Cause(400); c < 600; c++ {
		if text := c.String(); text != "" {
			causes = append(causes, []string{fmt.Sprint(uint32(c)), testkit.Sentence(text)})
		}
	}
	var p testkit.Page
	p.Text("What a server may say of subscribers. Plans, users and FreeRADIUS' files: [access.md](../access.md).")
	p.Section("Attributes of an Access-Accept")
	p.Text("They override the profile, one by one. A value that cannot be used:\n" +
		"* **refuses** the sign-in where it concerns whether and how the network may be used, security or the bill. " +
		"Event: `subscriber.refused`.\n" +
		"* is **left out** otherwise, as are attributes that the table does not have. Event: `subscriber.left-out`; " +
		"`show subscriber X` has it, `isthmus_radius_ignored_attributes_total` counts.\n\n" +
		"A wrong length refuses (RFC 2865 §5). `subscriber:` words are values of Cisco-AVPair. " +
		"A profile, access list, pool or instance that the file does not have refuses.")
	p.Table("attribute | dialect | used | a value that cannot be used",
		table.sorted([]string{"standard", "ours", "WISPr", "Mikrotik", "Cisco", "Juniper", "Microsoft"}))
	p.Section("CoA-Request and Disconnect-Request")
	p.Text("RFC 5176, at the addresses of `radius.coa`. A request is carried out whole or not at all: what an " +
		"Access-Accept leaves out is refused here. Refusals: event `radius.change-refused`, log and counters.")
	p.Table("attributes of a request | meaning", changeRows())
	p.Section("Error-Cause")
	p.Text("RFC 5176 §3.5.")
	p.Table("number | meaning", causes)
	p.Compare(t, "radius.md", "RADIUS: attributes and changes")
}

// changeRows are what selector does with the attributes of a request.
func changeRows() [][]string {
	var ignored []string
	for a, r := range fields {
		if r.doc == ofSession {
			ignored = append(ignored, a.String())
		}
	}
	for a := range beside {
		ignored = append(ignored, a.String())
	}
	slices.Sort(ignored)
	return [][]string{
		{"Acct-Session-Id, User-Name, NAS-Port-Id, NAS-Port, Calling-Station-Id, Framed-IP-Address, " +
			"Framed-IPv6-Prefix, Framed-IPv6-Address, Delegated-IPv6-Prefix, Framed-Interface-Id, " +
			"Chargeable-User-Identity", "Name the session: at least one, and all must match."},
		{"`subscriber:instance=NAME` beside addresses only", "The network instance of these addresses."},
		{"NAS-Identifier, NAS-IP-Address, NAS-IPv6-Address", "Ours, else 403."},
		{strings.Join(ignored, ", ") + ", Reply-Message", "Ignored."},
		{"Service-Type", "Framed is ignored; another one, such as Authorize-Only: 405."},
		{"Class, Acct-Terminate-Cause", "Ignored in a Disconnect-Request."},
		{"Event-Timestamp", "Within `replay_window` of our clock and not before our start, else dropped. Without " +
			"it 402, unless `event_timestamp: optional`."},
		{"State, Proxy-State", "Sent back in the answer."},
		{"those of an Access-Accept", "The change of a CoA-Request. Lists replace the former lists."},
		{"several sessions match", "A change, or addresses alone: 508 (RFC 5176 §3.5), and their " +
			"Acct-Session-Ids in the event. Other Disconnect-Requests end all."},
	}
}
