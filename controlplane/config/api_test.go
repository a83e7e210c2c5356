// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

func TestAPI(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	token := "{name: noc, role: read, sha256: " + hash + "}"
	with := func(text string) string { return base + "control:\n  page: false\n  api: {" + text + "}\n" }
	c := mustParse(t, with("listen: [127.0.0.1, '[2001:db8::1]:444'], tokens: ["+token+"]"))
	testkit.Equal(t, fmt.Sprint(c.Control.API.Addresses()), "[127.0.0.1:9443 [2001:db8::1]:444]", "addresses")
	mustParse(t, with("listen: [127.0.0.1], anonymous: read, tls: off"))
	mustParse(t, with(""))
	for _, r := range [][2]string{
		{with("listen: [127.0.0.1]"), "api.tokens: missing: nobody could use"},
		{with("listen: [192.0.2.1], anonymous: read, tls: off"),
			"api.tls: off, but 192.0.2.1:9443 can be reached"},
		{with("listen: [127.0.0.1, '127.0.0.1:9443'], anonymous: read"), "127.0.0.1:9443 is there twice"},
		{with("listen: [localhost], anonymous: read"), "is neither an IP address nor ADDRESS:PORT"},
		{with("certificate: a.pem"), "key"},
		{with("tokens: [{name: noc, role: root, sha256: " + hash + "}]"), "role"},
		{with("tokens: [{name: noc, role: read, sha256: abcd}]"), "is not 64 hexadecimal digits"},
		{with("tokens: [" + token + ", {name: other, role: operate, sha256: " + hash + "}]"),
			"is that of the token in line"},
		{with("tokens: [" + token + ", " + token + "]"), `"noc" is already in line`},
		{strings.Replace(with(""), "page: false", "page: true", 1),
			"control.page: needs an address in control.api.listen"},
	} {
		_, err := Parse("x.yaml", []byte(r[0]))
		testkit.Refused(t, err, r[1])
	}
}
