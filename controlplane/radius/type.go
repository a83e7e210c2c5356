// SPDX-License-Identifier: Apache-2.0

// Package radius is the client side of RADIUS (RFC 2865, 2866, 2869), over UDP and TLS (RFC 6614), and the server
// side of its dynamic authorisation (RFC 5176). The codec is pure: bytes in, packets or errors out.
package radius

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:generate sh -c "python3 dictionary.py > dictionary.txt && python3 dictionary.py --go > dictionary_gen.go"

// Type names an attribute: the vendor's private enterprise number above bit 32 (0: the standard space), its number
// below.
type Type uint64

// Vendor of the attribute; 0: none.
func (t Type) Vendor() uint32 { return uint32(t >> 32) }

// Kind is the type of an attribute's value, as far as its length can be checked.
type Kind uint8

const (
	Octets      Kind = iota
	Text             // UTF-8
	Integer          // 4 octets
	IPv4             // 4 octets
	IPv6             // 16 octets
	IPv6Prefix       // RFC 3162 §2.3
	InterfaceID      // 8 octets
	Date             // seconds since 1970, 4 octets
)

var kindNames = []string{"Octets", "Text", "Integer", "IPv4", "IPv6", "IPv6Prefix", "InterfaceID", "Date"}

type entry struct {
	name string
	kind Kind
}

// Names, numbers and data types from FreeRADIUS' dictionaries (CC-BY 4.0): vendor, number, name and kind, a row each.
//
//go:embed dictionary.txt
var dictionaryText string

var dictionary = sync.OnceValue(func() map[Type]entry {
	list := map[Type]entry{}
	for row := range strings.Lines(dictionaryText) {
		word := strings.Fields(row)
		vendor, _ := strconv.ParseUint(word[0], 10, 32) // dictionary.py writes numbers
		code, _ := strconv.ParseUint(word[1], 10, 8)
		list[Type(vendor<<32|code)] = entry{word[2], Kind(slices.Index(kindNames, word[3]))}
	}
	return list
})

// String is the attribute's name in FreeRADIUS' dictionaries, or its numbers.
func (t Type) String() string {
	if e, ok := dictionary()[t]; ok {
		return e.name
	}
	if v := t.Vendor(); v != 0 {
		return fmt.Sprintf("Attr-26.%d.%d", v, uint32(t))
	}
	return fmt.Sprintf("Attr-%d", uint32(t))
}

// knownVendor: we know attributes of the vendor. Their values hold attributes with one octet each of type and length.
func knownVendor(vendor uint32) bool {
	switch vendor {
	case 9, 311, 3561, 4874, 14122, 14988:
		return true
	}
	return false
}

// Code is a packet's type.
type Code uint8

const (
	AccessRequest      Code = 1
	AccessAccept       Code = 2
	AccessReject       Code = 3
	AccountingRequest  Code = 4
	AccountingResponse Code = 5
	AccessChallenge    Code = 11
	StatusServer       Code = 12
	DisconnectRequest  Code = 40
	DisconnectACK      Code = 41
	DisconnectNAK      Code = 42
	CoARequest         Code = 43
	CoAACK             Code = 44
	CoANAK             Code = 45
)

var codeNames = map[Code]string{
	AccessRequest: "Access-Request", AccessAccept: "Access-Accept", AccessReject: "Access-Reject",
	AccountingRequest: "Accounting-Request", AccountingResponse: "Accounting-Response",
	AccessChallenge: "Access-Challenge", StatusServer: "Status-Server",
	DisconnectRequest: "Disconnect-Request", DisconnectACK: "Disconnect-ACK", DisconnectNAK: "Disconnect-NAK",
	CoARequest: "CoA-Request", CoAACK: "CoA-ACK", CoANAK: "CoA-NAK",
}

func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// answers: a packet of code c may answer one of code request.
func (c Code) answers(request Code) bool {
	switch request {
	case AccessRequest:
		return c == AccessAccept || c == AccessReject || c == AccessChallenge
	case AccountingRequest:
		return c == AccountingResponse
	case StatusServer: // RFC 5997 §3: by the port
		return c == AccessAccept || c == AccountingResponse
	}
	return false
}
