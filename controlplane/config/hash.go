// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
)

// Argon is a hash in the form of the reference implementation: $argon2id$v=19$m=65536,t=3,p=1$salt$hash.
type Argon struct {
	Memory, Time uint32
	Threads      uint8
	Salt, Sum    []byte
}

const (
	argonPrefix = "$argon2id$"
	maxBcrypt   = 15 // its cost: seconds for one sign-in
)

// Argon: the hash is argon2id.
func (s Secret) Argon() bool { return strings.HasPrefix(string(s), argonPrefix) }

// checkHash looks whether a password_hash can be used.
func checkHash(hash Secret) error {
	switch {
	case hash.Argon():
		_, err := ParseArgon(hash)
		return err
	case strings.HasPrefix(string(hash), "$2"):
		cost, err := bcrypt.Cost([]byte(hash))
		switch {
		case err != nil:
			return errors.New("is no hash of bcrypt")
		case cost > maxBcrypt:
			return fmt.Errorf("bcrypt's cost may be %d at most", maxBcrypt)
		}
		return nil
	}
	return errors.New("is neither argon2id nor bcrypt")
}

// ParseArgon takes a hash apart. Its errors do not quote it.
func ParseArgon(hash Secret) (*Argon, error) {
	form := errors.New("is not $argon2id$v=19$m=...,t=...,p=...$salt$hash")
	part := strings.Split(string(hash), "$")
	if len(part) != 6 {
		return nil, form
	}
	a, version := &Argon{}, 0
	_, err1 := fmt.Sscanf(part[2], "v=%d", &version)
	_, err2 := fmt.Sscanf(part[3], "m=%d,t=%d,p=%d", &a.Memory, &a.Time, &a.Threads)
	var err3, err4 error
	a.Salt, err3 = base64.RawStdEncoding.DecodeString(part[4])
	a.Sum, err4 = base64.RawStdEncoding.DecodeString(part[5])
	if err := errors.Join(err1, err2, err3, err4); err != nil || version != argon2.Version {
		return nil, form
	}
	// What one sign-in may cost.
	if a.Memory > 256<<10 || a.Time == 0 || a.Time > 16 || a.Threads == 0 || a.Threads > 16 || len(a.Sum) < 16 ||
		len(a.Sum) > 64 {
		return nil, errors.New("at most m=262144, t=16, p=16, and a hash of 16 to 64 bytes")
	}
	return a, nil
}
