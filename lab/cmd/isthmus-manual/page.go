// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"isthmus/controlplane/command"
)

// edition is the text of a page's head and foot.
type edition struct {
	version string
	date    time.Time
}

// page is a manual page in the words of mdoc(7).
type page struct{ bytes.Buffer }

func newPage(e edition, name, section, short string) *page {
	p := &page{}
	p.line(".Dd %s", e.date.Format("January 2, 2006"))
	p.line(".Dt %s %s", strings.ToUpper(name), section)
	p.line(".Os")
	p.heading("NAME")
	p.line(".Nm %s", name)
	p.line(".Nd %s", escape(strings.TrimSuffix(short, ".")))
	return p
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *page) heading(title string) { p.line(".Sh %s", title) }

// escape makes text of what troff would take for its own.
func escape(s string) string {
	s = strings.NewReplacer(
		`\`, `\e`, "-", `\-`, "\t", "    ", "…", "...", "–", `\(en`, "→", `\(->`,
	).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// prose prints paragraphs; lines that begin with spaces stand as they are.
func (p *page) prose(text string) {
	literal, first := false, true
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimRight(line, "\n ")
		switch indented := strings.HasPrefix(line, "  "); {
		case line == "":
			continue
		case indented && !literal:
			p.line(".Bd -literal -offset indent")
			literal = true
		case !indented && literal:
			p.line(".Ed")
			literal = false
		}
		if !literal && !first && paragraph(text, line) {
			p.line(".Pp")
		}
		if literal {
			p.line("%s", escape(strings.TrimPrefix(line, "  ")))
		} else {
			p.text(line)
		}
		first = false
	}
	if literal {
		p.line(".Ed")
	}
}

// text prints words, each sentence on a line of its own, as mdoc wants it, lines no wider than 78 columns.
func (p *page) text(s string) {
	var line string
	for _, word := range strings.Fields(s) {
		word = escape(word)
		if line != "" && len(line)+1+len(word) > 78 {
			p.line("%s", line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
		if strings.HasSuffix(word, ".") || strings.HasSuffix(word, "?") || strings.HasSuffix(word, ".)") {
			p.line("%s", line)
			line = ""
		}
	}
	if line != "" {
		p.line("%s", line)
	}
}

// paragraph: an empty line stands before the line.
func paragraph(text, line string) bool { return strings.Contains(text, "\n\n"+line) }

func (p *page) examples(text string) {
	p.heading("EXAMPLES")
	p.line(".Bd -literal")
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		p.line("%s", escape(strings.TrimPrefix(strings.TrimRight(line, "\n "), "  ")))
	}
	p.line(".Ed")
}

func (p *page) flags(title string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	p.heading(title)
	p.line(".Bl -tag -width Ds")
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		tag := ".It Fl \\-" + escape(f.Name)
		if f.Shorthand != "" {
			tag = ".It Fl " + f.Shorthand + " , Fl \\-" + escape(f.Name)
		}
		if value != "" {
			tag += " Ar " + value
		}
		p.line("%s", tag)
		p.text(usage)
		if values := unsaid(f, usage); len(values) > 0 {
			p.text("(one of " + strings.Join(values, ", ") + ")")
		}
		if !slices.Contains([]string{"", "false", "0", "[]", "0s"}, f.DefValue) {
			p.text("(default: " + f.DefValue + ")")
		}
	})
	p.line(".El")
}

// unsaid are the values of a flag, unless its usage names all.
func unsaid(f *pflag.Flag, usage string) []string {
	said := strings.FieldsFunc(usage, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-'
	})
	values := command.ValuesOf(f)
	if slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(said, v) }) {
		return values
	}
	return nil
}

// commandPage is the manual page of one command.
func commandPage(e edition, cmd *cobra.Command) []byte {
	p := newPage(e, pageName(cmd), "1", cmd.Short)
	p.heading("SYNOPSIS")
	use := strings.TrimPrefix(cmd.UseLine(), cmd.CommandPath())
	p.line(".Nm %s", escape(cmd.CommandPath()))
	if use = strings.TrimSuffix(strings.TrimSpace(use), "[flags]"); strings.TrimSpace(use) != "" {
		p.line("%s", escape(strings.TrimSpace(use)))
	}
	if cmd.HasAvailableLocalFlags() {
		p.line(".Op Ar options")
	}
	p.heading("DESCRIPTION")
	text := cmd.Long
	if text == "" {
		text = strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
	}
	p.prose(text)
	if len(cmd.Aliases) > 0 {
		p.line(".Pp")
		p.text("Also called " + strings.Join(cmd.Aliases, ", ") + ".")
	}
	see := []string{}
	if cmd.HasParent() {
		see = append(see, pageName(cmd.Parent()))
	}
	if cmd.HasAvailableSubCommands() {
		p.heading("COMMANDS")
		p.line(".Bl -tag -width Ds")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				p.line(".It Ic %s", escape(strings.TrimSuffix(c.Use, " [flags]")))
				p.text(c.Short)
				see = append(see, pageName(c))
			}
		}
		p.line(".El")
	}
	p.flags("OPTIONS", command.OwnFlags(cmd))
	if cmd.HasParent() {
		p.line(".Pp\nOptions of all commands, variables and files:\n.Xr %s 1 .", cmd.Root().Name())
	} else {
		p.surroundings()
	}
	p.exits(cmd)
	if cmd.Example != "" {
		p.examples(cmd.Example)
	}
	p.seeAlso(see)
	return p.Bytes()
}

// variables and files of all commands.
var (
	variables = [][2]string{
		{"ISTHMUS_SOCKET", "Socket of the control plane, where --socket is not given."},
		{"ISTHMUS_SERVER", "https://HOST:PORT of a control plane, where --server is not given."},
		{"ISTHMUS_TOKEN", "Token for that, where --token-file is not given."},
		{"ISTHMUS_CA", "File of certificates that verify it, where --ca is not given."},
		{"ISTHMUS_FINGERPRINT", "SHA-256 of its certificate, where --fingerprint is not given."},
		{"NO_COLOR", "Without colours, also on a terminal."},
		{"TERM", "dumb: without colours."},
		{"COLUMNS", "Width of top --once where there is no terminal."},
		{"XDG_STATE_HOME", "Folder of the shell's history, else ~/.local/state."},
		{"NOTIFY_SOCKET", "isthmus run says there that it is ready, for systemd."},
		{"GOGC", "isthmus run leaves the pace of its garbage collector alone where it is set."},
	}
	paths = [][2]string{
		{"/etc/isthmus/isthmus.yaml", "Configuration, where the package's unit has it."},
		{"/run/isthmus/isthmus.sock", "Socket of the control plane."},
		{"/run/isthmus/dp.sock", "Socket of the data plane."},
		{"/var/lib/isthmus", "What outlives a reboot, where control.state names it: sessions, leases."},
		{"~/.local/state/isthmus/history", "Former lines of the shell."},
	}
)

// surroundings is what all commands have in common.
func (p *page) surroundings() {
	list := func(title, macro string, rows [][2]string) {
		p.heading(title)
		p.line(".Bl -tag -width Ds")
		for _, row := range rows {
			p.line(".It %s %s", macro, escape(row[0]))
			p.text(row[1])
		}
		p.line(".El")
	}
	list("ENVIRONMENT", "Ev", variables)
	list("FILES", "Pa", paths)
	p.line(".Pp")
	p.text("Commands that try the gateway, such as bench, demo and lab, are those of a second program, " +
		"isthmus-lab, which isthmus starts.")
}

// exits is what a command's exit status says.
func (p *page) exits(cmd *cobra.Command) {
	p.heading("EXIT STATUS")
	p.line(".Bl -tag -width Ds")
	for _, row := range [][2]string{{"0", "Done."},
		{"1", cmp.Or(cmd.Annotations[command.FailsWhen], "Understood and failed.")},
		{"2", "The command line is wrong."}, {"3", "No control plane answers."},
		{"130", cmd.Annotations[command.InterruptedWhen]}, {"other", cmd.Annotations[command.OtherStatus]}} {
		if row[1] != "" {
			p.line(".It %s", row[0])
			p.text(row[1])
		}
	}
	p.line(".El")
}

func (p *page) seeAlso(names []string) {
	p.heading("SEE ALSO")
	for _, name := range slices.Sorted(slices.Values(names)) {
		p.line(".Xr %s 1 ,", name)
	}
	p.line(".Xr isthmus.yaml 5")
}
