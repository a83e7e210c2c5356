// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"

	"isthmus/controlplane/config"
)

// tokenPrefix lets people and scanners of leaked secrets see what it is.
const (
	tokenPrefix = "isthmus_"
	maxToken    = 128
)

// Make returns a new token of 256 random bits, and its hash for the configuration.
func Make() (token string, hash [sha256.Size]byte) {
	var b [32]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	return token, sha256.Sum256([]byte(token))
}

// find compares a token with all, in a time that depends on how many there are alone.
func find(tokens []config.Token, token string) *config.Token {
	if len(token) > maxToken {
		return nil
	}
	hash := sha256.Sum256([]byte(token))
	at := -1
	for i := range tokens {
		same := subtle.ConstantTimeCompare(hash[:], tokens[i].SHA256[:])
		at = subtle.ConstantTimeSelect(same, i, at)
	}
	if at < 0 {
		return nil
	}
	return &tokens[at]
}
