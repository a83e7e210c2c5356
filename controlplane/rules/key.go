// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"isthmus/api"
)

// Prefix begins the keys of all objects that N4 sessions make.
const Prefix = "n4."

// Key is the name of a session's object.
func Key(seid uint64) string {
	var b [keyLength]byte
	putKey(b[:], seid)
	return string(b[:])
}

const keyLength = len(Prefix) + 16

func putKey(b []byte, seid uint64) {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], seid)
	copy(b, Prefix)
	hex.Encode(b[len(Prefix):], raw[:])
}

// SEIDOf is Key's inverse; false for what it does not make.
func SEIDOf(key string) (uint64, bool) {
	if len(key) != keyLength {
		return 0, false
	}
	seid, err := strconv.ParseUint(key[len(Prefix):], 16, 64)
	return seid, err == nil && Key(seid) == key
}

// Dynamic: an object belongs to N4 sessions, so we create and delete it.
func Dynamic(kind uint32, key string) bool {
	return DynamicKind(kind) && strings.HasPrefix(key, Prefix)
}

func DynamicKind(kind uint32) bool {
	return kind == api.KindSession || kind == api.KindPath || kind == api.KindPolicer
}
