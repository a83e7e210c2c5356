// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"isthmus/controlplane/command"
	lab "isthmus/lab/cli"
	"isthmus/lab/traffic"
)

// program is one beside isthmus, with a page of its own.
type program struct {
	name, short string
	synopsis    []string // what follows the name, a line for each way to call it
	text        string
	commands    []*cobra.Command // whose pages are those of isthmus
	flags       *pflag.FlagSet   // nil: options
	options     [][2]string
	exits       [][2]string
	examples    string
	see         []string
}

// programs are in the package beside isthmus. isthmus-dp is written in C: a test compares its options with main.c.
func programs() []program {
	laboratory, tester := lab.Root(), traffic.Command()
	return []program{
		{
			name: "isthmus-dp", short: "data plane of the Isthmus gateway",
			synopsis: []string{"[--socket PATH] [--huge auto|yes|no] [--memory MB] [-- EAL OPTIONS]",
				"replay --state FILE --in PORT=FILE... --out PORT=FILE... [--counters FILE] [--skip]",
				"filter EXPRESSION", "--version"},
			text: "isthmus-dp forwards. It reads no file: isthmus run starts it and configures it by its control " +
				"socket. When the control plane ends, it forwards on.\n\n" +
				"replay sends capture files through the same graph, without root and without threads; " +
				"isthmus replay calls it.\n\n" +
				"filter prints programs of classic BPF for an expression of pcap-filter: for frames, for IP packets.",
			options: [][2]string{
				{"--socket PATH", "Control socket (default: /run/isthmus/dp.sock)."},
				{"--huge auto|yes|no", "Use huge pages. auto, the default, takes them when 256 MB are free."},
				{"--memory MB", "Memory without huge pages (default: 2048). Only what is used becomes resident."},
				{"--version", "Print the version and the instruction set that it was built for."},
				{"--help", "Print the options."},
			},
			exits: [][2]string{{"0", "A signal ended it."},
				{"1", "It does not start, or the engine did not; the log says why."},
				{"2", "The command line is wrong."}},
			examples: "  isthmus-dp --socket /tmp/dp.sock --huge no --memory 512\n  isthmus-dp filter 'udp port 2152'",
			see:      []string{"isthmus", "isthmus-run", "isthmus-replay"},
		}, {
			name: "isthmus-lab", short: laboratory.Short, synopsis: []string{"COMMAND [options]"},
			text: laboratory.Long, commands: laboratory.Commands(), flags: command.OwnFlags(laboratory),
			exits: [][2]string{{"0", "Done."}, {"1", "Understood and failed."}, {"2", "The command line is wrong."},
				{"3", "No control plane answers."}},
			examples: laboratory.Example, see: []string{"isthmus", "isthmus-traffic"},
		}, {
			name: "isthmus-traffic", short: tester.Short,
			synopsis: []string{strings.TrimPrefix(tester.Use, tester.Name()+" ")},
			text: "A profile describes ports, streams of packets and what is expected of them. isthmus-traffic sends " +
				"them through a gateway and compares every packet that comes back. Its result is text, and JSON " +
				"where that is asked for.",
			flags: tester.LocalFlags(),
			exits: [][2]string{{"0", "All as expected."},
				{"1", "Something was wrong or lost, or an expectation failed."},
				{"2", "Not complete, or a bad profile."}, {"130", "Interrupted; what was measured is kept."}},
			examples: "  isthmus-traffic --check profile.yaml\n" +
				"  isthmus-traffic --rate 1Mpps --json result.json profile.yaml",
			see: []string{"isthmus", "isthmus-lab"},
		},
	}
}

// programPage is its manual page.
func programPage(e edition, g program) []byte {
	p := newPage(e, g.name, "1", g.short)
	p.heading("SYNOPSIS")
	for _, words := range g.synopsis {
		p.line(".Nm")
		for _, part := range strings.SplitAfter(words, "... ") { // lines of at most 80 octets
			p.line("%s", escape(strings.TrimSpace(part)))
		}
	}
	p.heading("DESCRIPTION")
	p.prose(g.text)
	see := g.see
	if len(g.commands) > 0 {
		p.heading("COMMANDS")
		p.line(".Bl -tag -width Ds")
		for _, c := range g.commands {
			if !c.IsAvailableCommand() || c.Name() == "help" || c.Name() == "completion" {
				continue
			}
			p.line(".It Ic %s", escape(strings.TrimSuffix(c.Use, " [flags]")))
			p.text(c.Short)
			if name := "isthmus-" + c.Name(); name != g.name {
				see = append(see, name)
			}
		}
		p.line(".El")
	}
	if g.flags != nil {
		p.flags("OPTIONS", g.flags)
	} else {
		p.rows("OPTIONS", g.options)
	}
	p.rows("EXIT STATUS", g.exits)
	p.examples(g.examples)
	p.seeAlso(see)
	return p.Bytes()
}

// rows is a list of words, each with what it means.
func (p *page) rows(title string, rows [][2]string) {
	p.heading(title)
	p.line(".Bl -tag -width Ds")
	for _, row := range rows {
		p.line(".It %s", escape(row[0]))
		p.text(row[1])
	}
	p.line(".El")
}
