// SPDX-License-Identifier: Apache-2.0

package network

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// FRR takes each file that a lab writes for it.
func TestFRRTakesItsFiles(t *testing.T) {
	if checkFRR() != nil {
		t.Skip("no FRR here")
	}
	for _, igp := range []string{"", "ospf", "isis"} {
		opt := Options{Generation: "isp", UEs: 1, Homes: 1, Announce: "pool", IGP: igp}
		l := &Lab{opt: opt, top: newTopology(&opt)}
		for _, r := range l.top.routers {
			for _, daemon := range l.daemons() {
				text, err := l.frrConfig(r, daemon)
				testkit.Must(t, err)
				file := filepath.Join(t.TempDir(), daemon+".conf")
				testkit.Must(t, os.WriteFile(file, text, 0o644))
				out, err := exec.Command(filepath.Join(frrPrograms, daemon), "--dryrun", "-f",
					file).CombinedOutput()
				// its exit status does not show it
				bad := err != nil || strings.Contains(string(out), "config line")
				testkit.ErrorIf(t, bad, "%s of %s, igp %q: %v: %s\n%s", daemon, r.name, igp, err, out,
					text)
			}
		}
	}
}

func TestFeed(t *testing.T) {
	seen := map[string]bool{}
	for i := range 70000 {
		p := fed(i)
		testkit.FatalIf(t, seen[p.String()] || p != p.Masked() || poolIPv4.Overlaps(p), "%v", p)
		seen[p.String()] = true
	}
	testkit.Equal(t, fed(MaxRoutes-1).String(), "26.255.255.0/24", "the last one")
}
