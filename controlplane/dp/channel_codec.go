// SPDX-License-Identifier: Apache-2.0

package dp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"isthmus/api"
	"isthmus/controlplane/access"
)

const frameHead = api.SizeofPartHead + int(unsafe.Sizeof(api.Frame{}))

// frameRoom is the bytes of a frame in a message.
func frameRoom(f *access.Frame) int { return frameHead + api.PartRoom(1, len(f.Payload)) }

// AppendFrame appends a frame as the channel carries it, whose port's name and payload are not too long.
func AppendFrame(b []byte, f *access.Frame) []byte {
	h := api.Frame{SEID: f.Session, Length: uint32(len(f.Payload)), Ethertype: f.EtherType, TPID: f.Line.TPID,
		STag: f.Line.STag, CTag: f.Line.CTag, MAC: f.Line.MAC, Reason: uint8(f.Reason)}
	copy(h.Port[:len(h.Port)-1], f.Line.Port)
	b = api.AppendRow(b, &h)
	if len(f.Payload) == 0 {
		return b
	}
	count := (len(f.Payload) + 7) / 8
	b = binary.NativeEndian.AppendUint16(b, api.PartFrameOctets)
	b = binary.NativeEndian.AppendUint16(b, 8)
	b = binary.NativeEndian.AppendUint32(b, uint32(count))
	b = append(b, f.Payload...)
	var zeros [8]byte
	return append(b, zeros[:8*count-len(f.Payload)]...)
}

// ReadFrames appends the frames of a message's body to a list; their payloads lie in the body.
func ReadFrames(body []byte, list []access.Frame, name func(*api.Key) string) ([]access.Frame, error) {
	var h api.Frame
	for len(body) > 0 {
		p, rest, err := api.NextPart(body)
		if err != nil {
			return list, err
		}
		if p.Number != api.PartFrame || p.Count != 1 {
			return list, fmt.Errorf("a part %d of %d structs where a frame is expected", p.Number, p.Count)
		}
		h = api.Frame{}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&h)), unsafe.Sizeof(h)), p.Rows)
		if h.Port[len(h.Port)-1] != 0 {
			return list, errors.New("a frame whose port's name does not end")
		}
		f := access.Frame{Session: h.SEID, EtherType: h.Ethertype, Reason: access.Reason(h.Reason),
			Line: access.Line{TPID: h.TPID, STag: h.STag, CTag: h.CTag, MAC: h.MAC}}
		if f.Payload, rest, err = octets(rest, h.Length); err != nil {
			return list, err
		}
		f.Line.Port = name(&h.Port)
		list = append(list, f)
		body = rest
	}
	return list, nil
}

func octets(body []byte, length uint32) ([]byte, []byte, error) {
	if length == 0 {
		return nil, body, nil
	}
	p, rest, err := api.NextPart(body)
	if err != nil {
		return nil, nil, err
	}
	if p.Number != api.PartFrameOctets || p.Size != 8 || uint64(len(p.Rows)) < uint64(length) {
		return nil, nil, fmt.Errorf("a frame of %d octets without them", length)
	}
	return p.Rows[:length:length], rest, nil
}
