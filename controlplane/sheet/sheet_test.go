// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// The library is as its package has it.
func TestLibraryIsAsPublished(t *testing.T) {
	sums, err := os.ReadFile("dygraphs/SHA256SUMS")
	testkit.Must(t, err)
	lines := strings.Split(strings.TrimSpace(string(sums)), "\n")
	testkit.Equal(t, len(lines), 3, "files")
	for _, line := range lines {
		want, name, _ := strings.Cut(line, "  ")
		data, err := os.ReadFile("dygraphs/" + name)
		testkit.Must(t, err)
		sum := sha256.Sum256(data)
		testkit.Equal(t, hex.EncodeToString(sum[:]), want, "%s", name)
	}
}
