// SPDX-License-Identifier: Apache-2.0

package pppoe

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"

	"isthmus/controlplane/access"
)

// cookies makes AC-Cookies, which replace state until a PADR comes (RFC 2516 §A): a unique number, and an HMAC-SHA256,
// cut to 128 bits, over it, the time and the line. A cookie is valid for one to two lives.
type cookies struct {
	mac hash.Hash
	sum [sha256.Size]byte
	n   uint32
}

const (
	cookieLife = 30 * time.Second // CPEs repeat a PADR for up to 15 s
	cookieSize = 4 + 16
)

func newCookies() cookies {
	secret := make([]byte, sha256.Size)
	rand.Read(secret) // never fails
	return cookies{mac: hmac.New(sha256.New, secret)}
}

// make writes a cookie for a line.
func (c *cookies) make(b []byte, line *access.Line, now time.Time) []byte {
	c.n++
	b = binary.BigEndian.AppendUint32(b, c.n)
	return append(b, c.over(b[len(b)-4:], line, epoch(now))...)
}

func epoch(now time.Time) uint64 { return uint64(now.UnixNano() / int64(cookieLife)) }

func (c *cookies) over(n []byte, line *access.Line, epoch uint64) []byte {
	var b [26]byte
	copy(b[:], n)
	binary.BigEndian.PutUint64(b[4:], epoch)
	copy(b[12:], line.MAC[:])
	binary.BigEndian.PutUint16(b[18:], line.TPID)
	binary.BigEndian.PutUint16(b[20:], line.STag)
	binary.BigEndian.PutUint16(b[22:], line.CTag)
	c.mac.Reset()
	c.mac.Write(b[:])
	c.mac.Write([]byte(line.Port))
	return c.mac.Sum(c.sum[:0])[:cookieSize-4]
}

// good: this end made the cookie, for this line, lately (row B3). It also returns its number.
func (c *cookies) good(cookie []byte, line *access.Line, now time.Time) (n uint32, ok bool) {
	if len(cookie) != cookieSize {
		return 0, false
	}
	b := epoch(now)
	made := func(in uint64) bool { return hmac.Equal(cookie[4:], c.over(cookie[:4], line, in)) }
	return binary.BigEndian.Uint32(cookie), made(b) || made(b-1)
}
