// SPDX-License-Identifier: Apache-2.0

package chap

import (
	"encoding/hex"
	"testing"

	"isthmus/controlplane/testkit"
)

func octets(t *testing.T, s string) []byte {
	b, err := hex.DecodeString(s)
	testkit.Must(t, err)
	return b
}

// The vectors of RFC 2759 §9.2.
func TestMSCHAPv2(t *testing.T) {
	const user, password = "User", "clientPass"
	authenticator := [16]byte(octets(t, "5b5d7c7d7b3f2f3e3c2c602132262628"))
	peer := [16]byte(octets(t, "21402324255e262a28295f2b3a337c7e"))
	challenge := challengeHash(&authenticator, &peer, user)
	testkit.Equal(t, hex.EncodeToString(challenge[:]), "d02e4386bce91226", "challenge")
	testkit.Equal(t, challengeHash(&authenticator, &peer, `BIGCO\User`), challenge,
		"challenge of a name with domain")
	hash := NTHash(password)
	testkit.Equal(t, hex.EncodeToString(hash[:]), "44ebba8d5312b8d611474411f56989ae", "hash")
	hashHash := md4Of(hash[:])
	testkit.Equal(t, hex.EncodeToString(hashHash[:]), "41c00c584bd2d91c4017a2a12fa59f3f", "hash of the hash")
	nt := NTResponse(&authenticator, &peer, user, hash)
	testkit.Equal(t, hex.EncodeToString(nt[:]), "82309ecd8d708b5ea08faa3981cd83544233114a3d85d6df", "response")
	testkit.Equal(t, AuthenticatorResponse(hash, &nt, &authenticator, &peer, user),
		"S=407A5589115FD0D6209F510FE9C04566932CDA56", "authenticator's response")

	value := (&Response{PeerChallenge: peer, NT: nt}).Append(nil)
	back, ok := ParseResponse(value)
	testkit.ErrorIf(t, !ok || back.PeerChallenge != peer || back.NT != nt, "not the fields that were written")
	for _, size := range []int{0, 48, 50} {
		_, ok = ParseResponse(make([]byte, size))
		testkit.ErrorIf(t, ok, "a response of %d octets is taken", size)
	}
}

func TestMD5(t *testing.T) {
	// printf '\x07secret0123456789abcdef' | md5sum
	got := MD5(7, "secret", []byte("0123456789abcdef"))
	testkit.Equal(t, hex.EncodeToString(got[:]), "96db2d8f96c291a6699a973ce5c168a8", "response")
}
