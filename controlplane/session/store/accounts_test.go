// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"isthmus/controlplane/testkit"
)

// accounts opens an accounting file, and returns its records.
func accounts(t *testing.T, path string) (a *Accounts, had string) {
	t.Helper()
	a, err := OpenAccounts(path, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	for _, r := range a.Records() {
		had += fmt.Sprintf("%d%s ", r.Number, r.Data)
	}
	return a, had
}

func TestAccounts(t *testing.T) {
	path := t.TempDir() + "/s.accounting.db"
	a, had := accounts(t, path)
	testkit.Equal(t, had, "", "of none")
	for i := range uint64(9) {
		a.Keep(8-i, []byte("x"))
	}
	a.Close()
	a.Keep(50, nil) // a late caller: no effect
	a, had = accounts(t, path)
	testkit.Equal(t, had, "0x 1x 2x 3x 4x 5x 6x 7x 8x ", "kept")
	a.Forget(3)
	a.Close()
	a, had = accounts(t, path)
	testkit.Equal(t, had, "0x 1x 2x 4x 5x 6x 7x 8x ", "kept")
	a.Close()

	// Records before damage, here of the last removal's data or length, are kept; the file goes aside.
	data, err := os.ReadFile(path)
	testkit.Must(t, err)
	for _, back := range []int{1, Overhead + frameHead - 2} {
		harmed := bytes.Clone(data)
		harmed[len(harmed)-back] ^= 1
		testkit.Must(t, os.WriteFile(path, harmed, 0o600))
		for range 2 {
			a, had = accounts(t, path)
			testkit.Equal(t, had, "0x 1x 2x 3x 4x 5x 6x 7x 8x ", "kept of a damaged file")
			a.Close()
		}
		testkit.Must(t, os.Remove(path+".bad"))
	}
}

// Writers compact the file.
func TestAccountsAreCompacted(t *testing.T) {
	path := t.TempDir() + "/s.accounting.db"
	a, _ := accounts(t, path)
	a.store.least = 1 << 12
	a.Keep(1, []byte("stays"))
	for i := range uint64(2000) {
		a.Keep(i+2, make([]byte, 100))
		a.Forget(i + 2)
	}
	a.Close()
	info, err := os.Stat(path)
	testkit.Must(t, err)
	testkit.ErrorIf(t, info.Size() > 1<<16, "%d bytes", info.Size())
	_, had := accounts(t, path)
	testkit.Equal(t, had, "1stays ", "kept")
}
