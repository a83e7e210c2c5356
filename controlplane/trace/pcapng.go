// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Block types, link types and options of pcapng (draft-ietf-opsawg-pcapng).
const (
	blockSection   = 0x0A0D0D0A
	blockInterface = 1
	blockPacket    = 6
	byteOrderMagic = 0x1A2B3C4D
	linkEthernet   = 1
	linkRaw        = 101

	optComment   = 1
	optUserAppl  = 4
	optIfName    = 2
	optTSResol   = 9
	optFlags     = 2
	flagInbound  = 1
	flagOutbound = 2
)

// Writer writes captures: an interface block for each port (and one for packets inside tunnels), packets with
// direction and a comment.
type Writer struct {
	w          io.Writer
	snap       uint32
	interfaces map[string]uint32
	Written    int64 // bytes
}

// NewWriter begins a section. The comment is text for people: the configuration that was in force, say.
func NewWriter(w io.Writer, program, comment string, snap uint32) (*Writer, error) {
	n := &Writer{w: w, snap: snap, interfaces: map[string]uint32{}}
	b := binary.LittleEndian.AppendUint32(nil, byteOrderMagic)
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint64(b, 1<<64-1)
	b = option(b, optUserAppl, []byte(program))
	if comment != "" {
		b = option(b, optComment, []byte(comment))
	}
	return n, n.block(blockSection, endOfOptions(b))
}

func option(b []byte, code uint16, value []byte) []byte {
	value = value[:min(len(value), 65535)]
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
	return pad(append(b, value...))
}

func endOfOptions(b []byte) []byte { return append(b, 0, 0, 0, 0) }

func pad(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func (n *Writer) block(kind uint32, body []byte) error {
	length := uint32(len(body) + 12)
	b := binary.LittleEndian.AppendUint32(nil, kind)
	b = binary.LittleEndian.AppendUint32(b, length)
	b = append(b, body...)
	b = binary.LittleEndian.AppendUint32(b, length)
	k, err := n.w.Write(b)
	n.Written += int64(k)
	return err
}

// number is that of an interface's block, which is written when it is needed first.
func (n *Writer) number(name string, link uint16) (uint32, error) {
	if i, ok := n.interfaces[name]; ok {
		return i, nil
	}
	b := binary.LittleEndian.AppendUint16(nil, link)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint32(b, n.snap)
	b = option(b, optIfName, []byte(name))
	b = option(b, optTSResol, []byte{9})
	i := uint32(len(n.interfaces))
	n.interfaces[name] = i
	return i, n.block(blockInterface, endOfOptions(b))
}

// Frame writes one frame of a packet.
func (n *Writer) Frame(p *Packet, f *Frame) error {
	name, link, direction := p.Port, uint16(linkEthernet), uint32(flagInbound)
	switch {
	case f.Stage == "inside":
		name, link, direction = p.Port+" inside", linkRaw, 0
	case f.Stage == "sent" && p.Outcome == "sent":
		name, direction = p.OutPort, flagOutbound
	case f.Stage == "sent":
		return nil // what was dropped is seen as it was received
	}
	if name == "" {
		name = "gateway"
	}
	i, err := n.number(name, link)
	if err != nil {
		return err
	}
	ns := uint64(max(f.Time.UnixNano(), 0))
	b := binary.LittleEndian.AppendUint32(nil, i)
	b = binary.LittleEndian.AppendUint32(b, uint32(ns>>32))
	b = binary.LittleEndian.AppendUint32(b, uint32(ns))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.Bytes)))
	b = binary.LittleEndian.AppendUint32(b, max(f.Length, uint32(len(f.Bytes))))
	b = pad(append(b, f.Bytes...))
	if direction != 0 {
		b = option(b, optFlags, binary.LittleEndian.AppendUint32(nil, direction))
	}
	b = option(b, optComment, []byte(comment(p)))
	return n.block(blockPacket, endOfOptions(b))
}

func comment(p *Packet) string {
	return p.conclude() + "\n" + p.Path()
}

// ReadFrames reads the frames that were received by a port (empty: any) from a capture of ours, in their order, with
// their ports. Any pcapng in this byte order with frames of Ethernet is read.
func ReadFrames(r io.Reader, fn func(port string, at time.Time, frame []byte) error) error {
	type iface struct {
		name string
		link uint16
		nano bool
	}
	var interfaces []iface
	for {
		var head [8]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		kind, length := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
		if length < 12 || length%4 != 0 || length > 16<<20 {
			return errors.New("this is no pcapng file, or of another byte order")
		}
		body := make([]byte, length-8)
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		body = body[:len(body)-4]
		switch {
		case kind == blockSection:
			if len(body) < 16 || binary.LittleEndian.Uint32(body) != byteOrderMagic {
				return errors.New("this is no pcapng file, or of another byte order")
			}
			interfaces = nil
		case kind == blockInterface && len(body) >= 8:
			o := options(body[8:])
			nano := len(o[optTSResol]) == 1 && o[optTSResol][0] == 9
			link := binary.LittleEndian.Uint16(body)
			interfaces = append(interfaces, iface{string(o[optIfName]), link, nano})
		case kind == blockPacket && len(body) >= 20:
			i, size := binary.LittleEndian.Uint32(body), int(binary.LittleEndian.Uint32(body[12:]))
			if int64(i) >= int64(len(interfaces)) || size > len(body)-20 {
				return errors.New("a packet of the capture is damaged")
			}
			o := options(body[20+(size+3)/4*4:][:max(0, len(body)-20-(size+3)/4*4)])
			sent := len(o[optFlags]) == 4 && binary.LittleEndian.Uint32(o[optFlags])&3 == flagOutbound
			if interfaces[i].link != linkEthernet || sent {
				continue
			}
			if int64(binary.LittleEndian.Uint32(body[16:])) > int64(size) {
				return fmt.Errorf("a packet of the capture was cut to %d bytes (--snap)", size)
			}
			high, low := binary.LittleEndian.Uint32(body[4:]), binary.LittleEndian.Uint32(body[8:])
			stamp := int64(uint64(high)<<32 | uint64(low))
			if !interfaces[i].nano {
				stamp *= 1000
			}
			if err := fn(interfaces[i].name, time.Unix(0, stamp), body[20:20+size]); err != nil {
				return err
			}
		}
	}
}

// options gives the first one of each code.
func options(b []byte) map[uint16][]byte {
	out := map[uint16][]byte{}
	for len(b) >= 4 {
		code, size := binary.LittleEndian.Uint16(b), int(binary.LittleEndian.Uint16(b[2:]))
		if code == 0 || size > len(b)-4 {
			break
		}
		if _, ok := out[code]; !ok {
			out[code] = b[4 : 4+size]
		}
		b = b[min(4+(size+3)/4*4, len(b)):]
	}
	return out
}
