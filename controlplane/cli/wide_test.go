// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"isthmus/controlplane/testkit"
)

// terminal is a pseudo terminal: what is written to it, and a function that reads so many octets at its other end.
func terminal(t *testing.T) (*os.File, func() string) {
	t.Helper()
	far, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { far.Close() })
	testkit.Must(t, unix.IoctlSetPointerInt(int(far.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(far.Fd()), unix.TIOCGPTN)
	testkit.Must(t, err)
	near, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { near.Close() })
	testkit.Must(t, unix.IoctlSetWinsize(int(near.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	return near, func() string {
		var b bytes.Buffer
		for !strings.HasSuffix(b.String(), "\x04") {
			part := make([]byte, 4096)
			n, err := far.Read(part)
			testkit.Must(t, err)
			b.Write(part[:n])
		}
		return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\x04"), "\r\n", "\n")
	}
}

// On a terminal columns in which no row has anything are left out, until all are asked for; a pipe gets all.
func TestShowWithoutEmptyColumns(t *testing.T) {
	socket := control(t, map[string]string{"GET /v1/show/session": `[{"name":"home-1","port":"access","encap":"qinq",
		"s_tag":100,"c_tag":7,"mac":"02:00:00:00:00:01","ue_ip4":"10.64.0.1","uplink_packets":5},
		{"name":"home-2","port":"access","encap":"qinq","s_tag":100,"c_tag":8,"ue_ip4":"10.64.0.2"}]`})
	show := func(args ...string) string {
		t.Helper()
		out, read := terminal(t)
		var failed bytes.Buffer
		code := Main(append([]string{"--socket", socket, "show", "session"}, args...),
			strings.NewReader(""), out, &failed)
		testkit.Equal(t, code, 0, "status: %s", failed.String())
		fmt.Fprint(out, "\x04")
		return read()
	}
	narrow, wide := show(), show("--wide")
	testkit.Equal(t, strings.Join(strings.Fields(strings.Split(narrow, "\n")[0]), " "),
		"SESSION PORT ENCAP TAGS MAC WORKER UE IPV4 UP PACKETS DOWN PACKETS DROPPED BUFFERED", "columns")
	testkit.ErrorIf(t, !strings.Contains(wide, "UE IPV6") || !strings.Contains(wide, "TEID LOCAL/PEER"),
		"--wide: %s", wide)
	code, piped, _ := run(t, "", "--socket", socket, "show", "session")
	testkit.ErrorIf(t, code != 0 || piped != wide, "a pipe gets %s", piped)
}
