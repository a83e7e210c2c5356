// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/controlplane/command"
	"isthmus/controlplane/testkit"
)

// lab's and control-load's errors for invalid command lines.
func TestLabAndLoadErrors(t *testing.T) {
	dir, running := t.TempDir(), t.TempDir()
	l, err := net.Listen("unix", filepath.Join(running, "lab.sock")) // a lab's, as far as exec asks it
	testkit.Must(t, err)
	defer l.Close()
	for _, test := range []struct {
		args   string
		code   int
		stderr string // must be contained
	}{
		{"lab", command.ExitUsage, "lab what?"},
		{"lab 3g", command.ExitUsage, "unknown command"},
		{"lab 4g --n9 --dir " + dir, command.ExitFailed, "N9 is an interface of 5G"},
		{"lab 4g --ues 0 --dir " + dir, command.ExitFailed, "0 UEs are not between"},
		{"lab show --dir " + dir, command.ExitFailed, "no lab is running in " + dir},
		{"lab idle x --dir " + dir, command.ExitFailed, "no number of a UE"},
		{"lab exec --dir " + dir + " ue true", command.ExitFailed, "no lab is running in " + dir},
		{"lab exec --dir " + running + " nowhere true", command.ExitFailed, `the lab has no "nowhere"`},
		{"lab exec ue", command.ExitUsage, "isthmus lab exec ue ping"},
		{"lab home --pppoe --dhcp --dir " + dir, command.ExitFailed, "by one of them"},
		{"lab home --subscribers 65 --dir " + dir, command.ExitFailed, "65 homes are not between 1 and 64"},
		{"control-load", command.ExitUsage, "in the group [peer access] is required"},
		{"control-load --access", command.ExitFailed, "--access needs --interface"},
		{"control-load --access --interface lo --families 5", command.ExitFailed, "none of 4, 6, 46"},
		{"control-load --access --interface none-such", command.ExitFailed, "--interface: "},
		{"control-load --access --interface lo --subscribers 0", command.ExitFailed, "0 subscribers are not"},
		{"control-load --peer nonsense", command.ExitFailed,
			`--peer: "nonsense" is neither an IP address nor ADDRESS:PORT`},
		{"control-load --peer 127.0.0.1 --rate 0", command.ExitFailed, "a rate of 0"},
		{"control-load --peer 127.0.0.1 --first-ue ::1", command.ExitFailed, "IPv4 addresses"},
	} {
		code, _, stderr := run(t, "", strings.Fields(test.args)...)
		if code != test.code || !strings.Contains(stderr, test.stderr) {
			t.Errorf("%s: exit status %d, %q", test.args, code, stderr)
		}
	}
}
