// SPDX-License-Identifier: Apache-2.0

package radius

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
)

// Policy is what Message-Authenticator an answer must have (RFC 3579 §3.2, and the advice against CVE-2024-3596).
type Policy uint8

const (
	First    Policy = iota // a right one before every other attribute
	Anywhere               // a right one
	Optional               // a right one or none
)

// Names of what Verify finds wrong.
var (
	ErrAuthenticator = errors.New("wrong authenticator")
	ErrUnsigned      = errors.New("no Message-Authenticator")
	ErrSignature     = errors.New("wrong Message-Authenticator")
	ErrSignatureLate = errors.New("Message-Authenticator is not the first attribute")
)

// Encode appends the packet to dst, signed by the secret. request is the authenticator of the answered request, nil for
// a request. Access-Request and Status-Server need a random p.Authenticator; others get theirs here.
// Message-Authenticator comes first except in accounting, whose authenticator signs.
func (p *Packet) Encode(dst, secret []byte, request *[16]byte) ([]byte, error) {
	start := len(dst)
	sealed := request != nil || p.Code != AccessRequest && p.Code != StatusServer // the authenticator is a hash
	dst = append(dst, byte(p.Code), p.ID, 0, 0)
	switch {
	case request != nil:
		dst = append(dst, request[:]...)
	case sealed:
		dst = append(dst, make([]byte, 16)...)
	default:
		dst = append(dst, p.Authenticator[:]...)
	}
	signed := p.Code != AccountingRequest && p.Code != AccountingResponse
	if signed {
		dst = append(dst, byte(MessageAuthenticator), 18)
		dst = append(dst, make([]byte, 16)...)
	}
	var err error
	for i := range p.Attributes {
		a := &p.Attributes[i]
		if dst, err = appendAttribute(dst, a, secret, &p.Authenticator); err != nil {
			return nil, err
		}
	}
	b := dst[start:]
	if len(b) > maxPacket {
		return nil, fmt.Errorf("%s of %d octets: a packet has at most %d", p.Code, len(b), maxPacket)
	}
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	if signed {
		mac := hmac.New(md5.New, secret)
		mac.Write(b)
		mac.Sum(b[headerLen+2 : headerLen+2])
	}
	if sealed {
		p.Authenticator = seal(b, secret)
		copy(b[4:], p.Authenticator[:])
	}
	return dst, nil
}

// AppendAttributes encodes attributes of which none is hidden by a secret.
func AppendAttributes(dst []byte, list []Attribute) ([]byte, error) {
	var err error
	for i := range list {
		if list[i].Type == UserPassword {
			return nil, errors.New("a password is not kept")
		}
		if dst, err = appendAttribute(dst, &list[i], nil, nil); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// seal is Request Authenticator of accounting and Response Authenticator: MD5 of the packet and the secret.
func seal(b, secret []byte) (out [16]byte) {
	h := md5.New()
	h.Write(b)
	h.Write(secret)
	h.Sum(out[:0])
	return out
}

func appendAttribute(dst []byte, a *Attribute, secret []byte, authenticator *[16]byte) ([]byte, error) {
	value := a.Value
	switch a.Type {
	case MessageAuthenticator:
		return dst, nil
	case UserPassword:
		if len(value) > 128 {
			return nil, fmt.Errorf("a password of %d octets: User-Password has at most 128", len(value))
		}
		value = Hide(value, secret, authenticator)
	}
	limit, vendor := maxValue, a.Type.Vendor()
	if vendor != 0 {
		limit -= vendorHeader
	}
	if len(value) > limit {
		return nil, fmt.Errorf("%s of %d octets: at most %d", a.Type, len(value), limit)
	}
	if vendor != 0 {
		dst = append(dst, byte(VendorSpecific), byte(2+vendorHeader+len(value)))
		dst = binary.BigEndian.AppendUint32(dst, vendor)
	}
	dst = append(dst, byte(a.Type), byte(2+len(value)))
	return append(dst, value...), nil
}

// Hide makes User-Password of a password (RFC 2865 §5.2).
func Hide(password, secret []byte, authenticator *[16]byte) []byte {
	out := make([]byte, max(16, (len(password)+15)/16*16))
	copy(out, password)
	before := authenticator[:]
	for i := 0; i < len(out); i += 16 {
		pad := seal(append(append([]byte(nil), secret...), before...), nil)
		subtle.XORBytes(out[i:i+16], out[i:i+16], pad[:])
		before = out[i : i+16]
	}
	return out
}

// Verify checks that b, cut to its length, answers the request whose authenticator is given. secret is shared.
func Verify(b, secret []byte, request *[16]byte, policy Policy) error {
	if len(b) < headerLen {
		return malformed("%d octets, shorter than a header", len(b))
	}
	c := append(make([]byte, 0, len(b)), b...)
	copy(c[4:], request[:])
	want := seal(c, secret)
	if subtle.ConstantTimeCompare(want[:], b[4:headerLen]) != 1 {
		return ErrAuthenticator
	}
	return verifySignature(c, secret, policy)
}

// VerifyRequest checks a CoA-Request or Disconnect-Request (RFC 5176 §2.3, §3.4).
func VerifyRequest(b, secret []byte, policy Policy) error {
	return Verify(b, secret, new([16]byte), policy)
}

// verifySignature looks for Message-Authenticator in b, which has the request's authenticator; b is changed.
func verifySignature(b, secret []byte, policy Policy) error {
	for at := headerLen; at+2 <= len(b) && b[at+1] >= 2 && at+int(b[at+1]) <= len(b); at += int(b[at+1]) {
		if b[at] != byte(MessageAuthenticator) {
			continue
		}
		if b[at+1] != 18 {
			return ErrSignature
		}
		value := b[at+2 : at+18]
		got := [16]byte(value)
		clear(value)
		mac := hmac.New(md5.New, secret)
		mac.Write(b)
		switch {
		case !hmac.Equal(mac.Sum(nil), got[:]):
			return ErrSignature
		case policy == First && at != headerLen:
			return ErrSignatureLate
		}
		return nil
	}
	if policy != Optional {
		return ErrUnsigned
	}
	return nil
}
