// SPDX-License-Identifier: Apache-2.0

package dp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/api"
	"isthmus/controlplane/access"
)

// channelWaits bounds the bytes that Send keeps while the data plane does not read.
const channelWaits = 4 << 20

// ErrChannelFull is Send's answer when frames were dropped: the data plane reads more slowly than they are sent.
var ErrChannelFull = errors.New("the data plane does not take frames so fast")

// Channel is a connection of its own for subscribers' frames, both ways. One goroutine calls Next; any may call the
// others.
type Channel struct {
	c       *Client
	first   uint32 // sequence of the request that frames answer
	names   map[api.Key]string
	frames  []access.Frame // of the last Next
	changed []access.Frame // ports, for the next one
	dropped atomic.Uint64

	mine  sync.Mutex
	ports map[string]access.PortAddresses

	mu      sync.Mutex
	waiting []byte // messages for the writer
	body    []byte // of the message that is being made
	more    chan struct{}
}

// OpenChannel connects and takes the channel, from any owner. It returns when the data plane has sent its access ports.
func OpenChannel(ctx context.Context, path string) (*Channel, error) {
	c, err := Dial(ctx, path)
	if err != nil {
		return nil, err
	}
	ch := &Channel{c: c, more: make(chan struct{}, 1)}
	if ch.first, err = c.tell(api.TypeChannel); err == nil {
		var f frame
		if f, err = c.streamed(ctx, api.TypeChannel, ch.first); err == nil {
			err = ch.take(f.body)
		}
	}
	if err == nil && ch.names == nil {
		err = fmt.Errorf("%w: a channel that does not begin with ports", ErrProtocol)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	go ch.write()
	return ch, nil
}

// Next waits for frames, which are good until the next call, or ports whose addresses changed (access.PortChanged). It
// fails when the connection has ended, or ctx has.
func (ch *Channel) Next(ctx context.Context) ([]access.Frame, error) {
	for {
		if list := ch.changed; len(list) > 0 {
			ch.changed = nil
			return list, nil
		}
		f, err := ch.c.streamed(ctx, api.TypeChannel, ch.first)
		if err == nil {
			err = ch.take(f.body)
		}
		if err != nil {
			return nil, err
		}
		if len(ch.frames) > 0 {
			return ch.frames, nil
		}
	}
}

// take reads one message: ports, or frames.
func (ch *Channel) take(body []byte) error {
	ch.frames = ch.frames[:0]
	p, _, err := api.NextPart(body)
	if err == nil && p.Number == api.PartFramePort {
		var list []api.FramePort
		if list, err = rows[api.FramePort](body); err == nil {
			ch.takePorts(list)
			return nil
		}
	}
	if err == nil {
		ch.frames, err = ReadFrames(body, ch.frames, ch.name)
	}
	if err != nil {
		return ch.c.broken(fmt.Errorf("%w: %v", ErrProtocol, err))
	}
	return nil
}

func (ch *Channel) takePorts(list []api.FramePort) {
	ch.names = make(map[api.Key]string, len(list))
	ports := make(map[string]access.PortAddresses, len(list))
	for i := range list {
		name := api.CString(list[i].Name[:])
		ch.names[list[i].Name] = name
		ports[name] = access.PortAddresses{MAC: list[i].MAC, LinkLocal: netip.AddrFrom16(list[i].LinkLocal)}
		if ports[name] != ch.ports[name] {
			line := access.Line{Port: name}
			ch.changed = append(ch.changed, access.Frame{Line: line, Reason: access.PortChanged})
		}
	}
	ch.mine.Lock()
	defer ch.mine.Unlock()
	ch.ports = ports
}

// name is a port's name, without an allocation for known ports.
func (ch *Channel) name(key *api.Key) string {
	if name, ok := ch.names[*key]; ok {
		return name
	}
	return api.CString(key[:])
}

// Port is what an access port calls itself.
func (ch *Channel) Port(name string) access.PortAddresses {
	ch.mine.Lock()
	defer ch.mine.Unlock()
	return ch.ports[name]
}

// Send copies frames for the data plane, and does not wait for it. Frames that cannot be (a long name or payload), and
// with ErrChannelFull the rest of them, are dropped and counted.
func (ch *Channel) Send(frames []access.Frame) error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	var refused error
	for i := range frames {
		f := &frames[i]
		need := frameRoom(f)
		switch {
		case len(f.Line.Port) >= api.NameSize || len(f.Payload) > api.FrameMost:
			ch.dropped.Add(1)
			refused = fmt.Errorf("a frame of %d bytes for port %q cannot be sent",
				len(f.Payload), f.Line.Port)
			continue
		case len(ch.waiting)+len(ch.body)+need > channelWaits:
			ch.dropped.Add(uint64(len(frames) - i))
			ch.finish()
			return ErrChannelFull
		case len(ch.body)+need > api.ChannelMost:
			ch.finish()
		}
		ch.body = AppendFrame(ch.body, f)
	}
	ch.finish()
	return refused
}

// finish makes a message of the body, and wakes the writer. The caller holds mu.
func (ch *Channel) finish() {
	if len(ch.body) == 0 {
		return
	}
	ch.waiting = appendHeader(ch.waiting, api.TypeChannelSend, api.FLast, uint32(len(ch.body)), 0)
	ch.waiting = append(ch.waiting, ch.body...)
	ch.body = ch.body[:0]
	select {
	case ch.more <- struct{}{}:
	default:
	}
}

// write is the goroutine that waits for the data plane in place of senders.
func (ch *Channel) write() {
	var out []byte
	for {
		select {
		case <-ch.more:
		case <-ch.c.done:
			return
		}
		ch.mu.Lock()
		out, ch.waiting = ch.waiting, out[:0]
		ch.mu.Unlock()
		ch.c.conn.SetWriteDeadline(time.Now().Add(commitTimeout))
		if _, err := ch.c.conn.Write(out); err != nil {
			ch.c.Close()
			return
		}
	}
}

// Dropped is how many frames Send has dropped.
func (ch *Channel) Dropped() uint64 { return ch.dropped.Load() }

// BootID is the data plane's.
func (ch *Channel) BootID() uint64 { return ch.c.hello.BootID }

// Close ends the connection, and so a Next that waits.
func (ch *Channel) Close() error { return ch.c.Close() }
