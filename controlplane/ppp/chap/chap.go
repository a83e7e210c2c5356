// SPDX-License-Identifier: Apache-2.0

// Package chap has the hash functions of CHAP with MD5 (RFC 1994) and of MS-CHAPv2 (RFC 2759, section 8), to make and
// to verify responses. Pure functions.
package chap

import (
	"crypto/des"
	"crypto/md5"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"unicode/utf16"

	//lint:ignore SA1019 MS-CHAP is made of it (RFC 2759)
	"golang.org/x/crypto/md4"
)

// Octets of MS-CHAPv2's fields.
const (
	ChallengeSize = 16 // of the authenticator's challenge, and of the peer's
	ResponseSize  = 49 // of the Value of a Response packet (§4): peer challenge, 8 zeros, NT response, flags
)

// MD5 is the response to a challenge (RFC 1994 §4.1).
func MD5(identifier uint8, secret string, challenge []byte) (response [16]byte) {
	b := make([]byte, 0, 64)
	b = append(b, identifier)
	b = append(b, secret...)
	return md5.Sum(append(b, challenge...))
}

// Response is the value of a Response packet (RFC 2759 §4).
type Response struct {
	PeerChallenge [ChallengeSize]byte
	NT            [24]byte
}

// ParseResponse takes the fields out of the value; reserved octets and flags are ignored, as §4 wants.
func ParseResponse(value []byte) (r Response, ok bool) {
	if len(value) != ResponseSize {
		return r, false
	}
	copy(r.PeerChallenge[:], value)
	copy(r.NT[:], value[24:])
	return r, true
}

// Append writes the value.
func (r *Response) Append(b []byte) []byte {
	b = append(b, r.PeerChallenge[:]...)
	b = append(b, make([]byte, 8)...)
	b = append(b, r.NT[:]...)
	return append(b, 0)
}

// NTHash is NtPasswordHash (§8.3): MD4 of the password's UTF-16. Octets that are no UTF-8 become U+FFFD.
func NTHash(password string) [16]byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(password)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return md4Of(b)
}

func md4Of(b []byte) (sum [16]byte) {
	h := md4.New()
	h.Write(b)
	h.Sum(sum[:0])
	return sum
}

// challengeHash is §8.2. The user's name is hashed without a Windows domain in front.
func challengeHash(authenticator, peer *[ChallengeSize]byte, user string) [8]byte {
	h := sha1.New()
	h.Write(peer[:])
	h.Write(authenticator[:])
	h.Write([]byte(user[strings.LastIndexByte(user, '\\')+1:]))
	return [8]byte(h.Sum(nil))
}

// NTResponse is GenerateNTResponse (§8.1) for a password of which only the hash is known.
func NTResponse(authenticator, peer *[ChallengeSize]byte, user string, hash [16]byte) (response [24]byte) {
	challenge := challengeHash(authenticator, peer, user)
	var keys [21]byte // ChallengeResponse (§8.5): the hash and five zeros are three keys of DES
	copy(keys[:], hash[:])
	for i := range 3 {
		encrypt(keys[7*i:7*i+7], challenge[:], response[8*i:])
	}
	return response
}

// encrypt is DesEncrypt (§8.6); each octet of DES's key ends in a parity bit, which the cipher ignores.
func encrypt(key7, clear, out []byte) {
	var bits uint64
	for _, b := range key7 {
		bits = bits<<8 | uint64(b)
	}
	var key [8]byte
	for i := range key {
		key[i] = byte(bits>>(49-7*i)) << 1
	}
	if cipher, err := des.NewCipher(key[:]); err == nil { // fails for keys of another length alone
		cipher.Encrypt(out, clear)
	}
}

// magic1 and magic2 are those of §8.7.
const (
	magic1 = "Magic server to client signing constant"
	magic2 = "Pad to make it do more than one iteration"
)

// AuthenticatorResponse is the text of the Success packet (§8.7): "S=" and 40 hexadecimal digits.
func AuthenticatorResponse(hash [16]byte, nt *[24]byte, authenticator, peer *[ChallengeSize]byte, user string) string {
	hashHash := md4Of(hash[:])
	h := sha1.New()
	h.Write(hashHash[:])
	h.Write(nt[:])
	h.Write([]byte(magic1))
	digest := h.Sum(nil)
	challenge := challengeHash(authenticator, peer, user)
	h.Reset()
	h.Write(digest)
	h.Write(challenge[:])
	h.Write([]byte(magic2))
	return "S=" + strings.ToUpper(hex.EncodeToString(h.Sum(nil)))
}
