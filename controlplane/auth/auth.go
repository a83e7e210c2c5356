// SPDX-License-Identifier: Apache-2.0

// Package auth authorises HTTP requests: peers of the Unix socket by their credentials, others by tokens, and browsers
// by a cookie exchanged for a token. It bounds guessing, and refuses requests that a foreign page caused.
package auth

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"isthmus/controlplane/config"
	"isthmus/controlplane/events"
)

// Role is what a client may do; a higher one may do all that a lower one may.
type Role uint8

// Roles. Their words are in the configuration.
const (
	None Role = iota
	Read
	Operate
)

var roleNames = [...]string{None: "none", Read: "read", Operate: "operate"}

func (r Role) String() string { return roleNames[r] }

// MarshalText is for JSON.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// ParseRole reads a role that a token can have.
func ParseRole(s string) (Role, error) {
	switch s {
	case "read":
		return Read, nil
	case "operate":
		return Operate, nil
	}
	return None, errors.New("a role is read or operate, not " + strconv.Quote(s))
}

func roleOf(word string) Role {
	r, _ := ParseRole(word) // of a configuration that was checked: read, operate or none
	return r
}

// Identity is a client.
type Identity struct {
	Role  Role
	Who   *events.Who
	token *config.Token // nil: it showed none
}

// Token is the name of the token that the client showed; empty: none.
func (id Identity) Token() string {
	if id.Who == nil {
		return ""
	}
	return id.Who.Token
}

// Holder names the owner of places: the token, the user at the Unix socket, or the address.
func (id Identity) Holder() string {
	switch {
	case id.Who == nil:
		return ""
	case id.Who.Token != "":
		return "token " + id.Who.Token
	case id.Who.Via == "unix":
		return "user " + strconv.FormatUint(uint64(id.Who.UID), 10)
	}
	return source(id.Who.Address).String()
}

type identityKey struct{}

// From returns the client of a request; one without identity may do nothing.
func From(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}

// Did publishes what the client of a request did. err nil: it was done.
func Did(ctx context.Context, log *events.Log, kind, subject string, err error, args ...any) {
	if err != nil {
		args = append(args, "error", err)
	}
	log.By(From(ctx).Who, kind, subject, args...)
}

// With gives a context a client.
func With(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// Peer is for http.Server.ConnContext of a Unix socket's server: a client that may open the socket may operate, under
// its credentials at that moment.
func Peer(ctx context.Context, c net.Conn) context.Context {
	who := &events.Who{Via: "unix"}
	if cred, err := Credentials(c); err == nil {
		who.UID, who.PID = cred.Uid, cred.Pid
		comm, _ := os.ReadFile("/proc/" + strconv.Itoa(int(cred.Pid)) +
			"/comm") // it may be gone, or of another namespace
		who.Program = strings.TrimSpace(string(comm))
	}
	return With(ctx, Identity{Role: Operate, Who: who})
}

// Local gives clients without credentials (Peer) the rights of the Unix socket.
func Local(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if From(r.Context()).Who == nil {
			r = r.WithContext(With(r.Context(), Identity{Role: Operate, Who: &events.Who{Via: "unix"}}))
		}
		h.ServeHTTP(w, r)
	})
}

// Credentials are those of the process at the other end of a Unix socket.
func Credentials(c net.Conn) (cred *unix.Ucred, err error) {
	for {
		w, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = w.NetConn()
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.New("no Unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, err
	}
	failed := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET,
			unix.SO_PEERCRED)
	})
	return cred, errors.Join(failed, err)
}

// Require lets requests of clients with a role pass.
func Require(role Role, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch id := From(r.Context()); {
		case id.Role >= role:
			h.ServeHTTP(w, r)
		case id.Role == None:
			w.Header().Set("WWW-Authenticate", `Bearer realm="isthmus"`)
			Refuse(w, http.StatusUnauthorized, "a token is needed: Authorization: Bearer TOKEN")
		default:
			Refuse(w, http.StatusForbidden,
				"the role "+id.Role.String()+" may not do that; "+role.String()+" may")
		}
	})
}
