// SPDX-License-Identifier: Apache-2.0

// Package printable keeps what others say from speaking to a terminal.
package printable

import (
	"strings"
	"unicode"
)

// Text has a question mark in place of each character that is not printed.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
