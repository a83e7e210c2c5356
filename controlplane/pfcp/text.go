// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"bytes"
	"strings"
)

// printable: all octets are visible ASCII, or blanks where permitted. Names and rules on N4 are nothing else; control
// characters and broken UTF-8 would reach logs, files and comparisons.
func printable(v []byte, blanks bool) bool {
	for _, o := range v {
		if o < 0x20 || o > 0x7e || o == ' ' && !blanks {
			return false
		}
	}
	return true
}

// labels reads a name of DNS labels (TS 23.003 §9.1), each behind its length; a last label of length 0 is optional.
func labels(v []byte) (string, bool) {
	var name strings.Builder
	for i := 0; i < len(v); {
		n := int(v[i])
		if n == 0 && i == len(v)-1 && i > 0 {
			break
		}
		if n == 0 || n > 63 || i+1+n > len(v) {
			return "", false
		}
		label := v[i+1 : i+1+n]
		if !printable(label, false) || bytes.IndexByte(label, '.') >= 0 {
			return "", false
		}
		if i > 0 {
			name.WriteByte('.')
		}
		name.Write(label)
		i += 1 + n
	}
	return name.String(), name.Len() > 0
}

// name reads a Network Instance, an APN or an FQDN: labels, or plain text as from many peers.
func name(v []byte) (string, *Error) {
	if name, ok := labels(v); ok {
		return name, nil
	}
	if len(v) == 0 || !printable(v, false) {
		return "", incorrect("not a name")
	}
	return string(v), nil
}

// nameOrNone reads a Network Instance or a DNN. An empty one, from some SMFs, counts as absent.
func nameOrNone(v []byte) (string, *Error) {
	if len(v) == 0 || len(v) == 1 && v[0] == 0 {
		return "", nil
	}
	return name(v)
}

func appendLabels(b []byte, name string) ([]byte, bool) {
	for label := range strings.SplitSeq(name, ".") {
		if len(label) == 0 || len(label) > 63 {
			return b, false
		}
		b = append(append(b, byte(len(label))), label...)
	}
	return b, true
}

// appendText writes plain text, as labels only where plain text would be read as labels.
func appendText(b []byte, text string) ([]byte, bool) {
	if _, ambiguous := labels([]byte(text)); ambiguous {
		return appendLabels(b, text)
	}
	return append(b, text...), printable([]byte(text), false) && text != ""
}

// tbcd are the digits of TS 29.002 (TBCD-STRING); 15 fills the last octet.
const tbcd = "0123456789*#abc"

func digits(v []byte) (string, bool) {
	text := make([]byte, 0, 2*len(v))
	for i, o := range v {
		low, high := o&15, o>>4
		if low == 15 || high == 15 && i != len(v)-1 {
			return "", false
		}
		text = append(text, tbcd[low])
		if high != 15 {
			text = append(text, tbcd[high])
		}
	}
	return string(text), len(text) > 0
}

func appendDigits(b []byte, text string) []byte {
	for i := 0; i < len(text); i += 2 {
		high := byte(15)
		if i+1 < len(text) {
			high = text[i+1] - '0'
		}
		b = append(b, high<<4|(text[i]-'0'))
	}
	return b
}
