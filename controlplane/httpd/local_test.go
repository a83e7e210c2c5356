// SPDX-License-Identifier: Apache-2.0

package httpd

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"isthmus/controlplane/testkit"
)

// A name that somebody else's server gave a browser for our address is not ours; whoever opened the address to others
// has names that we do not know.
func TestOwnNames(t *testing.T) {
	local := map[string]int{"localhost": 200, "localhost:9465": 200, "127.0.0.1:9465": 200, "[::1]:9465": 200,
		"127.8.8.8":    200,
		"evil.example": 421, "evil.example:9465": 421, "192.0.2.1:9465": 421, "": 421,
		"localhost.evil.example": 421}
	for host, want := range local {
		for _, public := range []bool{false, true} {
			r := httptest.NewRequest("GET", "/", nil)
			r.Host = host
			w := httptest.NewRecorder()
			OwnNames(http.HandlerFunc(hello), public).ServeHTTP(w, r)
			if public {
				want = 200
			}
			testkit.Equal(t, w.Code, want, "%q, public %t", host, public)
		}
	}
}

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
