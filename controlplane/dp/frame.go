// SPDX-License-Identifier: Apache-2.0

// Package dp is the control plane's end of the contract with the data plane (api/isthmus_api.h). It frames messages
// over a Unix stream socket, applies changes as transactions and reads tables. No message of the other end makes it
// panic.
package dp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"isthmus/api"
)

// ErrProtocol marks replies that do not follow api/isthmus_api.h.
var ErrProtocol = errors.New("malformed message from the data plane")

// errTooLong refuses to write what the other end would not read.
var errTooLong = fmt.Errorf("more than %d bytes in a message", api.MaxBody)

// frame is one message: its header and its body.
type frame struct {
	api.Header
	body []byte
}

func (f *frame) last() bool { return f.Flags&api.FLast != 0 }

// appendHeader appends the 16 bytes of a header.
func appendHeader(b []byte, typ, flags uint16, length, sequence uint32) []byte {
	b = binary.NativeEndian.AppendUint32(b, api.Magic)
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, length)
	return binary.NativeEndian.AppendUint32(b, sequence)
}

// writeMessage writes one message.
func writeMessage(w io.Writer, typ uint16, sequence uint32, parts ...[]byte) error {
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	if length > api.MaxBody {
		return fmt.Errorf("%w: %d", errTooLong, length)
	}
	var head [api.SizeofHeader]byte
	_, err := w.Write(appendHeader(head[:0], typ, api.FLast, uint32(length), sequence))
	for _, p := range parts {
		if err == nil {
			_, err = w.Write(p)
		}
	}
	return err
}

// parseHeader checks magic and length before anything is read or allocated for the body.
func parseHeader(b []byte) (api.Header, error) {
	if len(b) < api.SizeofHeader {
		return api.Header{}, fmt.Errorf("%w: header of %d bytes", ErrProtocol, len(b))
	}
	h := api.Header{
		Magic:    binary.NativeEndian.Uint32(b),
		Type:     binary.NativeEndian.Uint16(b[4:]),
		Flags:    binary.NativeEndian.Uint16(b[6:]),
		Length:   binary.NativeEndian.Uint32(b[8:]),
		Sequence: binary.NativeEndian.Uint32(b[12:]),
	}
	if h.Magic != api.Magic {
		return h, fmt.Errorf("%w: magic %#x, want %#x", ErrProtocol, h.Magic, uint32(api.Magic))
	}
	if h.Length > api.MaxBody {
		return h, fmt.Errorf("%w: body of %d bytes, at most %d allowed", ErrProtocol, h.Length, api.MaxBody)
	}
	return h, nil
}

// readFrame reads one message. io.EOF means that the stream ended between two messages.
func readFrame(r io.Reader) (frame, error) {
	var head [api.SizeofHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	h, err := parseHeader(head[:])
	if err != nil {
		return frame{}, err
	}
	// The body grows as bytes arrive, so a header alone cannot make us allocate much.
	var body bytes.Buffer
	body.Grow(int(min(h.Length, 64<<10)))
	if _, err := io.CopyN(&body, r, int64(h.Length)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
	return frame{Header: h, body: body.Bytes()}, nil
}

// rows decodes a body whose parts are all of one type.
func rows[T any, P api.Row[T]](body []byte) ([]T, error) {
	list, err := api.ReadRows[T, P](body)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrProtocol, err)
	}
	return list, nil
}
