// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// Each program of the package has a page, with each of its options.
func TestEachProgramHasAPage(t *testing.T) {
	files, err := share(edition{})
	testkit.Must(t, err)
	for _, name := range []string{"isthmus", "isthmus-dp", "isthmus-lab", "isthmus-traffic"} {
		text := string(files["man/man1/"+name+".1"])
		for _, part := range []string{"NAME", "SYNOPSIS", "OPTIONS", "EXIT STATUS", "EXAMPLES"} {
			testkit.ErrorIf(t, !strings.Contains(text, ".Sh "+part+"\n"), "%s has no %s", name, part)
		}
	}
	for _, g := range programs() {
		page := strings.ReplaceAll(string(programPage(edition{}, g)), `\-`, "-")
		if g.flags == nil {
			continue
		}
		for line := range strings.Lines(g.flags.FlagUsages()) {
			option := regexp.MustCompile(`--[a-z-]+`).FindString(line)
			testkit.ErrorIf(t, !strings.Contains(page, "Fl "+option[1:]), "%s has no %s", g.name, option)
		}
	}
}

// The page of isthmus-dp has the options of its source, and no others.
func TestPageOfTheDataPlane(t *testing.T) {
	source, err := os.ReadFile("../../../dataplane/main.c")
	testkit.Must(t, err)
	_, list, _ := strings.Cut(string(source), "struct option options[]")
	list, _, _ = strings.Cut(list, "};")
	var has []string
	for _, one := range regexp.MustCompile(`\{"([a-z]+)",`).FindAllStringSubmatch(list, -1) {
		has = append(has, "--"+one[1])
	}
	testkit.ErrorIf(t, len(has) < 5, "options of main.c: %v", has)
	g := programs()[0]
	for _, option := range has {
		found := false
		for _, row := range g.options {
			found = found || strings.Fields(row[0])[0] == option
		}
		testkit.ErrorIf(t, !found, "the page has no %s", option)
	}
	testkit.Equal(t, len(g.options), len(has), "options of the page")
}
