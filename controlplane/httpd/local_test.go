// SPDX-License-Identifier: Apache-2.0

package httpd

import (
	"testing"

	"isthmus/controlplane/testkit"
)

func TestListenLocal(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:0": "allow it with --x-public", "192.0.2.1:80": "nothing protects it",
		"127.0.0.1": "missing port", "nowhere.invalid:1": "x address",
	} {
		_, err := ListenLocal("x", address, false, "--x-public")
		testkit.Refused(t, err, want)
	}
	for address, public := range map[string]bool{"127.0.0.1:0": false, "[::1]:0": false, "0.0.0.0:0": true} {
		l, err := ListenLocal("x", address, public, "--x-public")
		testkit.Must(t, err)
		l.Close()
	}
}
