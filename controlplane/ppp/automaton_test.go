// SPDX-License-Identifier: Apache-2.0

package ppp

import (
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// The printed table of RFC 1661 §4.1, both halves.
const printed = `
 Up   |    2     irc,scr/6     -         -         -         -
 Down |    -         -         0       tls/1       0         1
 Open |  tls/1       1     irc,scr/6     3r        5r        5r
 Close|    0       tlf/0       2         2         4         4
  TO+ |    -         -         -         -       str/4     str/5
  TO- |    -         -         -         -       tlf/2     tlf/3
 RCR+ |    -         -       sta/2 irc,scr,sca/8   4         5
 RCR- |    -         -       sta/2 irc,scr,scn/6   4         5
 RCA  |    -         -       sta/2     sta/3       4         5
 RCN  |    -         -       sta/2     sta/3       4         5
 RTR  |    -         -       sta/2     sta/3     sta/4     sta/5
 RTA  |    -         -         2         3       tlf/2     tlf/3
 RUC  |    -         -       scj/2     scj/3     scj/4     scj/5
 RXJ+ |    -         -         2         3         4         5
 RXJ- |    -         -       tlf/2     tlf/3     tlf/2     tlf/3
 RXR  |    -         -         2         3         4         5

 Up   |    -         -         -           -
 Down |    1         1         1         tld/1
 Open |    6         7         8           9r
 Close|irc,str/4 irc,str/4 irc,str/4 tld,irc,str/4
  TO+ |  scr/6     scr/6     scr/8         -
  TO- | tlf/3p    tlf/3p    tlf/3p         -
 RCR+ |  sca/8   sca,tlu/9   sca/8   tld,scr,sca/8
 RCR- |  scn/6     scn/7     scn/6   tld,scr,scn/6
 RCA  |  irc/7     scr/6x  irc,tlu/9   tld,scr/6x
 RCN  |irc,scr/6   scr/6x  irc,scr/8   tld,scr/6x
 RTR  |  sta/6     sta/6     sta/6   tld,zrc,sta/5
 RTA  |    6         6         8       tld,scr/6
 RUC  |  scj/6     scj/7     scj/8     scj/9
 RXJ+ |    6         6         8         9
 RXJ- |  tlf/3     tlf/3     tlf/3   tld,irc,str/5
 RXR  |    6         7         8       ser/9
`

var (
	eventNames = [events]string{"Up", "Down", "Open", "Close", "TO+", "TO-", "RCR+", "RCR-", "RCA", "RCN", "RTR",
		"RTA",
		"RUC", "RXJ+", "RXJ-", "RXR"}
	actionNames = map[string]step{"sca": sca, "scn": scn, "sta": sta, "scj": scj, "ser": ser, "tld": tld,
		"irc": irc,
		"zrc": zrc, "scr": scr, "str": str, "tls": tls, "tlf": tlf, "tlu": tlu}
)

func cell(t *testing.T, text string) step {
	if text == "-" {
		return none
	}
	text = strings.TrimRight(text, "rpx")
	actions, state, both := strings.Cut(text, "/")
	if !both {
		actions, state = "", text
	}
	s := step(state[0] - '0')
	for _, name := range strings.Split(actions, ",") {
		a, known := actionNames[name]
		testkit.ErrorIf(t, !known && name != "", "no action %s", name)
		s |= a
	}
	return s
}

func TestTableIsRFC1661s(t *testing.T) {
	seen := 0
	for half, text := range strings.Split(strings.TrimSpace(printed), "\n\n") {
		for row, line := range strings.Split(text, "\n") {
			name, cells, _ := strings.Cut(line, "|")
			testkit.Equal(t, strings.TrimSpace(name), eventNames[row], "row %d", row)
			for column, c := range strings.Fields(cells) {
				testkit.Equal(t, table[row][6*half+column], cell(t, c), "%s in state %d",
					eventNames[row], 6*half+column)
				seen++
			}
		}
	}
	testkit.Equal(t, seen, int(events)*10, "cells")
}
