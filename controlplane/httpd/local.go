// SPDX-License-Identifier: Apache-2.0

package httpd

import (
	"fmt"
	"net"
)

// ListenLocal opens an unprotected address. An address that other machines can reach needs the option. what is for
// messages.
func ListenLocal(what, address string, public bool, option string) (net.Listener, error) {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s address %q: %w", what, address, err)
	}
	if !public && !a.IP.IsLoopback() {
		return nil, fmt.Errorf("%s address %q can be reached from other machines, and nothing protects it: "+
			"use a loopback address, or allow it with %s", what, address, option)
	}
	return net.ListenTCP("tcp", a)
}
