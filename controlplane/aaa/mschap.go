// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"crypto/des"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf16"

	//lint:ignore SA1019 MS-CHAP is made of it (RFC 2759)
	"golang.org/x/crypto/md4"
)

// ntHash is NtPasswordHash of RFC 2759 §8.3.
func ntHash(password string) [16]byte {
	var text []byte
	for _, unit := range utf16.Encode([]rune(password)) {
		text = append(text, byte(unit), byte(unit>>8))
	}
	return md4Of(text)
}

func md4Of(b []byte) (out [16]byte) {
	h := md4.New()
	h.Write(b)
	h.Sum(out[:0])
	return out
}

// mschap is one exchange of RFC 2759: challenge of 16 octets, response of 49.
type mschap struct{ user, challenge, response []byte }

func (m *mschap) peer() []byte { return m.response[:16] }
func (m *mschap) nt() []byte   { return m.response[24:48] }

// challengeHash is §8.2; the name is without its domain.
func (m *mschap) challengeHash() []byte {
	user := m.user
	if i := strings.LastIndexByte(string(user), '\\'); i >= 0 {
		user = user[i+1:]
	}
	h := sha1.New()
	h.Write(m.peer())
	h.Write(m.challenge)
	h.Write(user)
	return h.Sum(nil)[:8]
}

// verify tells whether the response was made of the password that has this hash; success is for the Success packet
// (§5).
func (m *mschap) verify(hash [16]byte) (success string, ok bool) {
	if len(m.challenge) != 16 || len(m.response) != 49 {
		return "", false
	}
	challenge := m.challengeHash()
	want := challengeResponse(challenge, hash)
	if subtle.ConstantTimeCompare(want[:], m.nt()) != 1 {
		return "", false
	}
	// GenerateAuthenticatorResponse, §8.7.
	again := md4Of(hash[:])
	h := sha1.New()
	h.Write(again[:])
	h.Write(m.nt())
	h.Write([]byte("Magic server to client signing constant"))
	digest := h.Sum(nil)
	h.Reset()
	h.Write(digest)
	h.Write(challenge)
	h.Write([]byte("Pad to make it do more than one iteration"))
	return fmt.Sprintf("S=%X", h.Sum(nil)), true
}

// challengeResponse is §8.5: three times DES.
func challengeResponse(challenge []byte, hash [16]byte) (out [24]byte) {
	var keys [21]byte
	copy(keys[:], hash[:])
	for i := range 3 {
		block, err := des.NewCipher(spread(keys[7*i : 7*i+7]))
		if err == nil { // it has eight octets
			block.Encrypt(out[8*i:8*i+8], challenge)
		}
	}
	return out
}

// spread makes a DES key of 56 bits; parity is not looked at.
func spread(b []byte) []byte {
	v := uint64(0)
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	out := make([]byte, 8)
	for i := range out {
		out[i] = byte(v>>(49-7*i)) << 1
	}
	return out
}

// failure is the Failure packet's text (§6): 691, not to be tried again on this connection.
func failure(challenge []byte) string {
	return "E=691 R=0 C=" + strings.ToUpper(hex.EncodeToString(challenge)) + " V=3 M=Authentication failed"
}
