// SPDX-License-Identifier: Apache-2.0

package dp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/access"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/testkit"
)

func open(t testing.TB, s *dptest.Server) *dp.Channel {
	t.Helper()
	c, err := dp.OpenChannel(t.Context(), s.Path)
	testkit.Must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func someFrames(count int) []access.Frame {
	list := make([]access.Frame, count)
	for i := range list {
		list[i] = access.Frame{
			Line: access.Line{Port: "access", TPID: 0x88a8, STag: 100, CTag: uint16(i),
				MAC: [6]byte{2, 5: byte(i)}},
			Reason: access.PPPControl, EtherType: 0x8864, Session: uint64(i),
			Payload: bytes.Repeat([]byte{byte(i)}, i%50),
		}
		if i%50 == 0 {
			list[i].Payload = nil
		}
	}
	return list
}

func TestFramesGoUpAndDown(t *testing.T) {
	s := dptest.Start(t)
	access9 := access.PortAddresses{MAC: [6]byte{2, 9}, LinkLocal: netip.MustParseAddr("fe80::9")}
	s.AccessPort("access", access9)
	c := open(t, s)
	testkit.Equal(t, c.Port("access"), access9, "addresses")
	testkit.Equal(t, c.Port("other"), access.PortAddresses{}, "of no port")
	changed(t, c, "access")

	want := someFrames(200)
	s.Punt(want[:120]...)
	s.Punt(want[120:]...)
	for got := 0; got < len(want); {
		frames, err := c.Next(t.Context())
		testkit.Must(t, err)
		for i := range frames {
			if !reflect.DeepEqual(frames[i], want[got]) {
				t.Fatalf("frame %d is %+v, want %+v", got, frames[i], want[got])
			}
			got++
		}
	}
	testkit.Must(t, c.Send(want))
	var sent []access.Frame
	testkit.Until(t, "frames came down", func() bool {
		sent = append(sent, s.Sent()...)
		return len(sent) == len(want)
	})
	testkit.ErrorIf(t, !reflect.DeepEqual(sent, want), "other frames came down than were sent")
}

func TestPortsMayChange(t *testing.T) {
	s := dptest.Start(t)
	c := open(t, s) // there is none yet
	s.AccessPort("later", access.PortAddresses{MAC: [6]byte{2, 7}})
	changed(t, c, "later")
	s.AccessPort("other", access.PortAddresses{MAC: [6]byte{2, 8}})
	changed(t, c, "other")
	moved := access.PortAddresses{MAC: [6]byte{2, 7}, LinkLocal: netip.MustParseAddr("fe80::1")}
	s.AccessPort("later", moved)
	changed(t, c, "later")
	testkit.Equal(t, c.Port("later"), moved, "addresses")
	s.Punt(access.Frame{Line: access.Line{Port: "later"}})
	frames, err := c.Next(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, frames[0].Line.Port, "later", "port")
}

// changed has the channel report that a port has other addresses.
func changed(t *testing.T, c *dp.Channel, port string) {
	t.Helper()
	frames, err := c.Next(t.Context())
	testkit.Must(t, err)
	want := []access.Frame{{Line: access.Line{Port: port}, Reason: access.PortChanged}}
	testkit.ErrorIf(t, !reflect.DeepEqual(frames, want), "%+v", frames)
}

func TestFramesThatCannotBeSent(t *testing.T) {
	s := dptest.Start(t)
	c := open(t, s)
	long := access.Frame{Line: access.Line{Port: strings.Repeat("x", api.NameSize)}}
	big := access.Frame{Line: access.Line{Port: "a"}, Payload: make([]byte, api.FrameMost+1)}
	good := access.Frame{Line: access.Line{Port: "a"}, Payload: make([]byte, api.FrameMost)}
	testkit.ErrorIf(t, c.Send([]access.Frame{long, good, big}) == nil, "sent")
	testkit.Equal(t, c.Dropped(), 2, "dropped")
	testkit.Until(t, "the good one came down", func() bool { return len(s.Sent()) == 1 })
}

// A data plane that does not read loses frames, and no caller waits.
func TestSendDoesNotWait(t *testing.T) {
	s := dptest.Start(t)
	c := open(t, s)
	frame := []access.Frame{{Line: access.Line{Port: "a"}, Payload: make([]byte, 1400)}}
	s.Hold(func() {
		for range 10000 {
			if err := c.Send(frame); err != nil {
				testkit.ErrorIf(t, !errors.Is(err, dp.ErrChannelFull), "%v", err)
				return
			}
		}
		t.Error("14 MB were taken")
	})
	testkit.ErrorIf(t, c.Dropped() == 0, "none was counted")
}

func TestTheChannelEnds(t *testing.T) {
	s := dptest.Start(t)
	first := open(t, s)
	open(t, s)
	_, err := first.Next(t.Context())
	testkit.Refused(t, err, "another control plane took the channel over")
	third := open(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := third.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	s.Kill()
	if _, err := third.Next(t.Context()); err == nil {
		t.Error("the loss was not noticed")
	}
}

func FuzzFrames(f *testing.F) {
	var body []byte
	for _, frame := range someFrames(3) {
		body = dp.AppendFrame(body, &frame)
	}
	f.Add(body)
	f.Add(body[:len(body)-8])
	f.Add(api.Body(&api.FramePort{}))
	nameless := api.Frame{}
	copy(nameless.Port[:], strings.Repeat("x", api.NameSize))
	f.Add(api.Body(&nameless))
	f.Fuzz(func(t *testing.T, body []byte) {
		name := func(k *api.Key) string { return api.CString(k[:]) }
		list, err := dp.ReadFrames(body, nil, name)
		if err != nil {
			return
		}
		var again []byte
		for i := range list {
			again = dp.AppendFrame(again, &list[i])
		}
		same, err := dp.ReadFrames(again, nil, name)
		if err != nil || fmt.Sprint(same) != fmt.Sprint(list) {
			t.Fatalf("%v became %v: %v", list, same, err)
		}
	})
}
