// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/view"
)

// A flood: subscribers of the first gateway send for its control plane as fast as its worker takes packets, from a
// source inside the graph. Routing must stay as it is, as seen from outside.

// floodPort is a port of the first gateway, where there is to be a flood.
const floodPort = "flood"

// MaxFlood is how many seconds it may last.
const MaxFlood = 3600

const (
	floodLines = 4096 // subscriber lines: C-tags
	floodFrame = 96
)

// floodHeader is a broadcast frame of a line, S-tag 100; what is given follows its C-tag, which is the stream's.
func floodHeader(rest ...byte) []byte {
	head := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0x66, 0, 1, 0x88, 0xa8, 0, 100, 0x81, 0, 0, 1}
	return append(head, rest...)
}

// floodStreams: PPPoE discovery (PADI, RFC 2516 section 5.1) and DHCP of clients without address (RFC 2131).
func floodStreams() []v1.Stream {
	padi := floodHeader(0x88, 0x63, 0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0)
	ip := []byte{0x45, 0, 0, 20 + 8 + 16, 0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255}
	sum := uint32(0)
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	dhcp := append(floodHeader(8, 0), append(ip, 0, 68, 0, 67, 0, 8+16, 0, 0)...)
	var list []v1.Stream
	for name, header := range map[string][]byte{"flood-pppoe": padi, "flood-dhcp": dhcp} {
		s := api.Synth{Flows: floodLines, Share: 1, Sizes: 1}
		s.Size[0] = floodFrame
		copy(s.Port[:], floodPort)
		copy(s.Sink[:], floodPort)
		s.In.Length = uint16(copy(s.In.Bytes[:], header))
		s.In.Fields = 1
		s.In.Field[0] = api.SynthField{Offset: 18, Width: 2, Type: api.FieldAdd, Divide: 1,
			Modulo: floodLines - 2, Step: 1}
		s.Out = s.In // of what never comes
		list = append(list, v1.Stream{Name: name, Body: api.Body(&s)})
	}
	return list
}

// flooded asks the first gateway.
func (d Demonstration) flooded(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	return call(ctx, filepath.Join(d.opt.Dir, gatewayName(0), "isthmus.sock"), method, path, body)
}

// offered is how many packets the flood has brought.
func (d Demonstration) offered(ctx context.Context) (n uint64, err error) {
	var rows []view.Stream
	b, err := d.flooded(ctx, http.MethodGet, "/v1/show/stream", nil)
	if err == nil {
		err = json.Unmarshal(b, &rows)
	}
	for i := range rows {
		n += rows[i].Offered
	}
	return n, err
}

// sumOf adds up a field wherever it is in a document.
func sumOf(v any, field string) (n uint64) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			n += sumOf(x, field)
		}
	case map[string]any:
		for name, x := range v {
			if f, is := x.(float64); is && name == field {
				n += uint64(f)
			} else {
				n += sumOf(x, field)
			}
		}
	}
	return n
}

// sessionsLost is how many BFD and BGP sessions have ended so far, as both ends of the first gateway's saw it.
func (d Demonstration) sessionsLost(ctx context.Context) (bfd, bgp uint64, err error) {
	for _, node := range []string{d.top.routers[0].name, fabric(0)} {
		for _, q := range []struct {
			command, field string
			to             *uint64
		}{
			{"show bfd peers counters json", "session-down", &bfd},
			{"show bgp neighbors json", "connectionsDropped", &bgp},
		} {
			shell := []string{"vtysh", "--vty_socket", d.frrFolder(node), "-c", q.command}
			out, failed := inNode(ctx, node, shell...).Output()
			var v any
			if failed = errors.Join(failed, json.Unmarshal(out, &v)); failed != nil {
				out = out[:min(len(out), 200)]
				err = errors.Join(err, fmt.Errorf("%s: %w: %s", q.command, failed, out))
			}
			*q.to += sumOf(v, q.field)
		}
	}
	return bfd, bgp, err
}

// watchRoutes counts routes that leave the kernels of the first gateway's clones and of the first router, until end.
func (d Demonstration) watchRoutes(ctx context.Context) (end func() int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var wait []func() int
	for _, node := range []string{d.top.routers[0].name, fabric(0)} {
		var out bytes.Buffer
		cmd := inNode(ctx, node, "ip", "monitor", "route")
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			cancel()
			return nil, err
		}
		wait = append(wait, func() int {
			cmd.Wait()
			return strings.Count(out.String(), "Deleted ")
		})
	}
	return func() (n int) {
		cancel()
		for _, w := range wait {
			n += w()
		}
		return n
	}, nil
}

// Flood floods the first gateway, and reports the effect on routing.
func (d Demonstration) Flood(ctx context.Context) error {
	probes, err := d.startProbes()
	if err != nil {
		return err
	}
	defer stopProbes(probes)
	if err := d.settled(ctx, probes); err != nil {
		return err
	}
	bfd, bgp, err := d.sessionsLost(ctx)
	if err != nil {
		return err
	}
	withdrawn, err := d.watchRoutes(ctx)
	if err != nil {
		return err
	}
	defer withdrawn()
	streams := floodStreams()
	body, err := json.Marshal(streams)
	if err == nil {
		_, err = d.flooded(ctx, http.MethodPost, "/v1/stream", body)
	}
	if err != nil {
		return err
	}
	reset(probes)
	began := time.Now()
	if _, err = d.flooded(ctx, http.MethodPost, "/v1/stream/start", nil); err != nil {
		return err
	}
	err = pause(ctx, time.Duration(d.opt.Flood)*time.Second)
	rate, failed := d.offered(ctx)
	seconds := time.Since(began).Seconds()
	_, stopped := d.flooded(ctx, http.MethodPost, "/v1/stream/stop", nil)
	if err = errors.Join(err, failed, stopped); err != nil {
		return err
	}
	bfdNow, bgpNow, err := d.sessionsLost(ctx)
	if err != nil {
		return err
	}
	d.say("%s flooded for %.0f s with %.2f million packets a second for its control plane: "+
		"%d BFD and %d BGP sessions lost, %d routes withdrawn", gatewayName(0), seconds,
		float64(rate)/seconds/1e6, bfdNow-bfd, bgpNow-bgp, withdrawn())
	d.report(gatewayName(0)+" flooded", probes)
	for i := range streams {
		streams[i].Body = nil
	}
	if body, err = json.Marshal(streams); err == nil {
		_, err = d.flooded(ctx, http.MethodPost, "/v1/stream", body)
	}
	return err
}
