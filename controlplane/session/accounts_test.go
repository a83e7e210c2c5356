// SPDX-License-Identifier: Apache-2.0

package session

import (
	"log/slog"
	"testing"

	"isthmus/controlplane/session/store"
	"isthmus/controlplane/testkit"
)

// Records of accounting that a former version kept among sessions get the file that outlives a boot.
func TestAccountsAmongSessions(t *testing.T) {
	path, _ := stored(t)
	log := slog.New(slog.DiscardHandler)
	old, err := store.Open(path, store.Boot(), log)
	testkit.Must(t, err)
	testkit.Must(t, old.Write([]store.Record{{Kind: store.Account, Number: 4, Data: []byte("d")}}))
	old.Close()
	for _, boot := range []string{store.Boot(), "another"} {
		t.Run(boot, func(t *testing.T) { opened(t, path, boot) })
	}
	c, err := Inspect(path, nil)
	testkit.ErrorIf(t, err != nil || c.Accounts != 0, "%+v %v", c, err)
	a, err := store.OpenAccounts(store.AccountsPath(path), log)
	testkit.Must(t, err)
	defer a.Close()
	list := a.Records()
	testkit.ErrorIf(t, len(list) != 1 || list[0].Number != 4 || string(list[0].Data) != "d", "%v", list)
}
