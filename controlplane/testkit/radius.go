// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// RADIUSValues are the values that FreeRADIUS' dictionaries name, by attribute and name: "Acct-Status-Type Start".
// Without Debian's freeradius-common the test is skipped.
func RADIUSValues(t *testing.T) map[string]uint32 {
	t.Helper()
	files, err := filepath.Glob("/usr/share/freeradius/dictionary.*")
	Must(t, err)
	if len(files) == 0 {
		t.Skip("freeradius-common is not installed: ./dev setup")
	}
	values := map[string]uint32{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		Must(t, err)
		for line := range strings.Lines(string(text)) {
			word := strings.Fields(line)
			if len(word) < 4 || word[0] != "VALUE" {
				continue
			}
			if v, err := strconv.ParseUint(word[3], 0, 32); err == nil {
				values[word[1]+" "+word[2]] = uint32(v)
			}
		}
	}
	return values
}
