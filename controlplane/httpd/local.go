// SPDX-License-Identifier: Apache-2.0

package httpd

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// ListenLocal opens an address that nothing protects. One that other machines can reach must be asked for by the
// option. what is for messages.
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

// OwnNames refuses requests for a host that is not this machine by name or address: a browser that was told a wrong
// address for somebody's name sends that name (DNS rebinding). public asks nothing, for it knows no names.
func OwnNames(h http.Handler, public bool) http.Handler {
	if public {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		a, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if host != "localhost" && (err != nil || !a.IsLoopback()) {
			http.Error(w, "this address serves localhost alone", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}
