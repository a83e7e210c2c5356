// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"isthmus/controlplane/testkit"
)

// ours are the commands that are not cobra's own.
func ours() []*cobra.Command {
	var list []*cobra.Command
	for _, cmd := range all(tree()) {
		if !strings.Contains(cmd.CommandPath(), "completion") {
			list = append(list, cmd)
		}
	}
	return list
}

func TestEachCommandIsExplained(t *testing.T) {
	for _, cmd := range ours() {
		path := cmd.CommandPath()
		testkit.ErrorIf(t, cmd.Short == "", "%s has no Short", path)
		testkit.ErrorIf(t, !strings.Contains(cmd.Example, path), "%s has no example of itself", path)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			testkit.ErrorIf(t, f.Usage == "", "%s --%s has no usage", path, f.Name)
		})
		for line := range strings.Lines(cmd.Example) {
			testkit.ErrorIf(t, !strings.HasPrefix(line, "  "), "%s: example %q is not indented", path, line)
		}
	}
}

// The examples' command lines have only flags that exist, and as many words as the command takes.
func TestExamplesParse(t *testing.T) {
	for _, cmd := range ours() {
		for line := range strings.Lines(cmd.Example) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " | ")
			words := strings.Fields(strings.Split(line, " >")[0])
			if len(words) < 2 || words[0] != "isthmus" || strings.Contains(line, "'") ||
				strings.Contains(line, "lab exec") {
				continue
			}
			root := tree()
			found, rest, err := root.Find(words[1:])
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err == nil && found.Args != nil && !found.HasSubCommands() {
				err = found.Args(found, found.Flags().Args())
			}
			testkit.ErrorIf(t, err != nil, "%s: %v", line, err)
		}
	}
}

func TestPagesAreClean(t *testing.T) {
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("mandoc is not installed")
	}
	dir := t.TempDir()
	testkit.Must(t, run([]string{dir, "v1.2", "2026-01-31"}))
	pages, err := filepath.Glob(dir + "/man/man?/*")
	testkit.Must(t, err)
	testkit.ErrorIf(t, len(pages) < 50, "only %d pages", len(pages))
	out, _ := exec.Command(mandoc, append([]string{"-Tlint"}, pages...)...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		// mandoc looks for pages in the system's folders alone.
		line = strings.TrimSpace(line)
		if _, name, missing := strings.Cut(line, "referenced manual not found: Xr "); missing {
			name, section, _ := strings.Cut(name, " ")
			_, err := os.Stat(filepath.Join(dir, "man/man"+section[:1], name+"."+section[:1]))
			testkit.ErrorIf(t, err != nil, "%s", line)
			continue
		}
		t.Error(line)
	}
	for _, name := range []string{"bash-completion/completions/isthmus", "zsh/site-functions/_isthmus-lab",
		"fish/vendor_completions.d/isthmus.fish"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		testkit.ErrorIf(t, err != nil || len(data) < 1000, "%s: %d bytes, %v", name, len(data), err)
	}
}

func TestEscape(t *testing.T) {
	for from, want := range map[string]string{
		".x": `\&.x`, "'x": `\&'x`, `a\b`: `a\eb`, "--wait": `\-\-wait`,
	} {
		testkit.Equal(t, escape(from), want, "%s", from)
	}
}

// The schema's values of a key stand at the key: enumerated ones, of a list's members too, and bounds.
func TestSchemaPageHasEachValue(t *testing.T) {
	schema, err := os.ReadFile("../../../docs/config.schema.json")
	testkit.Must(t, err)
	items := strings.Split(string(schemaPage(edition{}, schema)), "\n.It Cm ")
	at := map[string]string{}
	for _, item := range items[1:] {
		name, text, _ := strings.Cut(item, "\n")
		at[strings.ReplaceAll(name, `\-`, "-")] = strings.ReplaceAll(text, `\-`, "-")
	}
	seen := 0
	var walk func(path string, node map[string]any)
	walk = func(path string, node map[string]any) {
		for _, word := range []string{"enum", "minimum", "maximum", "minItems", "maxItems", "default"} {
			values, many := node[word].([]any)
			if one := node[word]; one != nil && !many {
				values = []any{one}
			}
			for _, v := range values {
				seen++
				testkit.ErrorIf(t, !strings.Contains(at[path], fmt.Sprint(v)),
					"%s: %s %v is not on the page", path, word, v)
			}
		}
		either, _ := node["anyOf"].([]any) // the value, or a reference to the environment
		for _, one := range either {
			walk(path, one.(map[string]any))
		}
		for name, child := range node {
			switch next, _ := child.(map[string]any); name {
			case "properties":
				for key, one := range next {
					walk(strings.TrimPrefix(path+"."+key, "."), one.(map[string]any))
				}
			case "items", "additionalProperties":
				if next != nil {
					if _, object := next["properties"]; object {
						walk(path+"[]", next)
					} else {
						walk(path, next)
					}
				}
			}
		}
	}
	var root map[string]any
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	testkit.Must(t, d.Decode(&root))
	walk("", root)
	testkit.ErrorIf(t, seen < 500, "%d values were looked for", seen)
}
