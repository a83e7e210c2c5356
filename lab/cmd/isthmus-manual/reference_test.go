// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"isthmus/controlplane/command"
	"isthmus/controlplane/config"
	"isthmus/controlplane/testkit"
)

func TestReferenceCommands(t *testing.T) {
	var p testkit.Page
	p.Text("Commands of isthmus, and of isthmus-lab, which it starts. What they are for: [cli.md](../cli.md).")
	for _, cmd := range ours() {
		if cmd.HasAvailableSubCommands() && cmd.Long == "" && !cmd.HasAvailableLocalFlags() {
			continue // its commands say it
		}
		p.Section(cmd.CommandPath())
		p.Text("`%s`", strings.TrimSpace(strings.TrimSuffix(cmd.UseLine(), "[flags]")))
		text := cmd.Long
		if text == "" {
			text = testkit.Sentence(cmd.Short)
		}
		p.Text("%s", paragraphs(text))
		var rows [][]string
		command.OwnFlags(cmd).VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			value, usage := pflag.UnquoteUsage(f)
			option := "--" + strings.TrimSpace(f.Name+" "+value)
			if f.Shorthand != "" {
				option = "-" + f.Shorthand + ", " + option
			}
			preset := ""
			if !slices.Contains([]string{"", "false", "0", "[]", "0s"}, f.DefValue) {
				preset = "`" + f.DefValue + "`"
			}
			rows = append(rows, []string{"`" + option + "`", preset, testkit.Sentence(usage)})
		})
		p.Table("option | default | meaning", rows)
	}
	p.Compare(t, "commands.md", "Commands")
}

// paragraphs has indented lines, which stand as they are on manual pages, as code.
func paragraphs(text string) string {
	var b strings.Builder
	literal := false
	for line := range strings.Lines(text) {
		if indented := strings.HasPrefix(line, "  "); indented != literal && strings.TrimSpace(line) != "" {
			b.WriteString("```\n")
			literal = indented
		}
		b.WriteString(line)
	}
	if literal {
		b.WriteString("\n```")
	}
	return b.String()
}

// patterns are what texts of the schema are.
var patterns = map[string]string{
	`^[A-Za-z0-9][A-Za-z0-9._:-]{0,30}$`:                       "name",
	`^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$`:                           "prefix",
	`^[0-9A-Fa-f:.]+/[0-9]{1,3}$`:                              "prefix with its length",
	`^[0-9A-Fa-f:.]+$`:                                         "IP address",
	`^\[?[0-9A-Fa-f:.]+(\]?:[0-9]{1,5})?$`:                     "IP address, also with a port",
	`^[0-9A-Fa-f:.]+( *- *[0-9A-Fa-f:.]+)?$`:                   "IP address or range",
	`^[0-9A-Za-z:./-]+$`:                                       "prefix or host name",
	`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$`:                     "MAC address",
	`^[0-9]+(-[0-9]+)?$`:                                       "number or range",
	`^[0-9]{1,4}( *- *[0-9]{1,4})?$`:                           "VLAN or range",
	`^[0-9]+(\.[0-9]+)?([kMGT]?bit)?$`:                         "rate",
	`^[0-9]+(\.[0-9]+)?(B|kB|MB|ms)?$`:                         "size or time",
	`^(any|icmp|igmp|tcp|udp|gre|esp|icmpv6|sctp|[0-9]{1,3})$`: "protocol, by name or number",
	`^(path|none|[0-9]+)$`:                                     "`path`, `none` or a number",
	`^(pass|drop|remark [0-9]{1,2})$`:                          "`pass`, `drop` or `remark DSCP`",
	`^([0-3]|3\.[0-3])$`:                                       "traffic class",
}

// kind is the type of a key's value, or the form of its text.
func (k *key) kind() string {
	types := fmt.Sprint(k.Type)
	switch {
	case len(k.Enum) > 0:
		return "`" + strings.ReplaceAll(strings.Trim(fmt.Sprint(k.Enum), "[]"), " ", "`, `") + "`"
	case k.Pattern != "":
		if word := patterns[k.Pattern]; word != "" {
			return word
		}
		return "text like `" + k.Pattern + "`"
	case len(k.AnyOf) > 0:
		return k.AnyOf[0].kind()
	case strings.Contains(types, "boolean"):
		return "`true`, `false`"
	case k.Items != nil:
		return strings.TrimSpace("list " + k.Items.kind())
	case strings.Contains(types, "object") && len(k.Properties) == 0:
		return "mapping of numbers"
	case strings.Contains(types, "string"):
		return "text"
	}
	return ""
}

func keyRows(before string, k key) (rows [][]string) {
	for _, name := range slices.Sorted(maps.Keys(k.Properties)) {
		child := k.Properties[name]
		if len(child.OneOf) > 0 { // a list, or one entry
			child.Items = child.OneOf[0].Items
		}
		values := child.kind()
		bounds := child
		if child.Items != nil {
			of := map[bool]string{true: "numbers", false: "mappings"}[child.Items.Minimum != ""]
			values, bounds = "list of "+cmp.Or(child.Items.kind(), of), *child.Items
		}
		words := []string{}
		if values != "" {
			words = append(words, values)
		}
		words = append(words, between(bounds.Minimum, bounds.Maximum, "")...)
		words = append(words, between(child.MinItems, child.MaxItems, " of them")...)
		preset := ""
		switch {
		case slices.Contains(k.Required, name):
			preset = "required"
		case child.Default != nil:
			preset = fmt.Sprintf("`%v`", child.Default)
		}
		path := before + name
		rows = append(rows, []string{"`" + path + "`", strings.Join(words, ", "), preset, child.Description})
		next, mark := child, "."
		if child.Items != nil {
			next, mark = *child.Items, "[]."
		}
		rows = append(rows, keyRows(path+mark, next)...)
	}
	return rows
}

func TestReferenceKeys(t *testing.T) {
	schema, err := config.Schema()
	testkit.Must(t, err)
	var root key
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	testkit.Must(t, d.Decode(&root))
	var p testkit.Page
	p.Text("Every key of the file. Without a default a key is absent, empty, 0 or false. Entries of a list are\n" +
		"`NAME[]`. How to write values, and examples: [config.md](../config.md).")
	for _, name := range slices.Sorted(maps.Keys(root.Properties)) {
		section := root.Properties[name]
		p.Section(name)
		p.Text("%s", section.Description)
		if section.Items != nil {
			section = *section.Items
		}
		p.Table("key | value | default | meaning", keyRows("", section))
	}
	p.Compare(t, "config.md", "Keys of the configuration file")
}
