// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"isthmus/api"
	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/radius"
)

func pool4(p *access.Plan) *string         { return &p.Pool4 }
func pool6(p *access.Plan) *string         { return &p.Pool6 }
func poolPD(p *access.Plan) *string        { return &p.PoolPD }
func rateUp(p *access.Plan) *access.Rate   { return &p.Up }
func rateDown(p *access.Plan) *access.Rate { return &p.Down }

// handler lays an attribute over a plan.
type handler = func(*planner, *radius.Attribute) error

// only takes one number, which asks for nothing.
func only(what string, one uint32) handler {
	return func(_ *planner, a *radius.Attribute) error {
		if v, err := a.Uint32(); err != nil || v != one {
			return fmt.Errorf("%d: %s", v, what)
		}
		return nil
	}
}

func (p *planner) ipv4(a *radius.Attribute) error {
	addr, err := a.Address()
	if err != nil {
		return err
	}
	// RFC 2865 §5.8: the user, or we, choose.
	if addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}) || addr == netip.AddrFrom4([4]byte{255, 255, 255,
		254}) {
		return nil
	}
	if addr.IsUnspecified() || addr.IsMulticast() || addr.IsLoopback() {
		return fmt.Errorf("%s is no host's address", addr)
	}
	p.plan.IPv4 = addr
	return nil
}

func (p *planner) ipv6(a *radius.Attribute) error {
	addr, err := a.Address()
	if err != nil {
		return err
	}
	if addr.IsUnspecified() || addr.IsMulticast() || addr.IsLoopback() || addr.IsLinkLocalUnicast() {
		return fmt.Errorf("%s is no host's address", addr)
	}
	p.plan.IPv6 = netip.PrefixFrom(addr, 128)
	return nil
}

// netmask is of the subnet that a home by IPoE is assigned (RFC 2865 §5.9).
func (p *planner) netmask(a *radius.Attribute) error {
	bits, size := net.IPMask(a.Value).Size()
	if bits == 0 || size != 32 {
		return fmt.Errorf("%s is no mask of a subnet", net.IP(a.Value))
	}
	p.plan.Mask = bits
	return nil
}

func prefix(of func(*access.Plan) *netip.Prefix) handler {
	return func(p *planner, a *radius.Attribute) error {
		v, err := a.Prefix()
		if err != nil {
			return err
		}
		if v.Bits() == 0 || v.Addr().IsMulticast() || v.Addr().IsLinkLocalUnicast() {
			return fmt.Errorf("%s is no subscriber's", v)
		}
		*of(p.plan) = v
		return nil
	}
}

func (p *planner) interfaceID(a *radius.Attribute) error {
	if len(a.Value) != 8 {
		return fmt.Errorf("of %d octets", len(a.Value))
	}
	p.plan.InterfaceID = binary.BigEndian.Uint64(a.Value)
	return nil
}

// named checks the name of something of the configuration.
func named(what, text string) (string, error) {
	var n config.Name
	if n.UnmarshalText([]byte(text)) != nil {
		if len(text) > 32 {
			text = text[:32] + "..."
		}
		return "", fmt.Errorf("%s %q: no name of ours looks so", what, text)
	}
	return text, nil
}

func name(what string, of func(*access.Plan) *string) handler {
	return func(p *planner, a *radius.Attribute) (err error) {
		*of(p.plan), err = named(what, string(a.Value))
		return err
	}
}

func seconds(least time.Duration, one access.Setting, of func(*access.Plan) *time.Duration) handler {
	return func(p *planner, a *radius.Attribute) error {
		v, err := a.Uint32()
		if err != nil {
			return err
		}
		d := time.Duration(v) * time.Second
		if d > 0 {
			d = max(d, least)
		}
		*of(p.plan) = d
		p.plan.Without.Say(one, d == 0)
		return nil
	}
}

func (p *planner) dns(a *radius.Attribute) error {
	addr, err := a.Address()
	if err != nil {
		return err
	}
	return p.addDNS(addr)
}

func (p *planner) addDNS(addr netip.Addr) error {
	if err := grow(p, "DNS servers", &p.plan.DNS, maxLists); err != nil {
		return err
	}
	p.plan.DNS = append(p.plan.DNS, addr)
	return nil
}

// route is RFC 2865 §5.22: network, gateway, metrics. The gateway is the subscriber.
func (p *planner) route(a *radius.Attribute) error {
	word := strings.Fields(string(a.Value))
	if len(word) == 0 {
		return errors.New("is empty")
	}
	v, err := routed(word[0])
	if err != nil {
		return err
	}
	if v.Addr().Is4() != (a.Type == radius.FramedRoute) || !config.IsBehind(v) {
		return fmt.Errorf("%q is no network behind a subscriber", clip(word[0]))
	}
	var via netip.Addr
	if len(word) > 1 {
		if via, err = netip.ParseAddr(word[1]); err != nil {
			return fmt.Errorf("by %q: is no address", clip(word[1]))
		}
	}
	if err := grow(p, "framed routes", &p.plan.Routes, maxRoutes); err != nil {
		return err
	}
	p.plan.Routes = append(p.plan.Routes, v)
	if via.IsValid() && !via.IsUnspecified() {
		p.routes = append(p.routes, gatewayed{a, v, via})
	}
	return nil
}

// routed is a network. RFC 2865 §5.22: without a length it has that of its class.
func routed(text string) (netip.Prefix, error) {
	v, err := netip.ParsePrefix(text)
	if a, plain := netip.ParseAddr(text); plain == nil && a.Is4() {
		switch first := a.As4()[0]; {
		case first < 128:
			v, err = a.Prefix(8)
		case first < 192:
			v, err = a.Prefix(16)
		default:
			v, err = a.Prefix(24)
		}
		if v.Addr() != a {
			return v, fmt.Errorf("%q has no length, and is no network of its class", clip(text))
		}
	}
	if err != nil {
		return v, fmt.Errorf("%q is no network such as 10.0.0.0/24", clip(text))
	}
	if v != v.Masked() {
		return v, fmt.Errorf("%q has bits behind its length", clip(text))
	}
	return v, nil
}

// announced is RFC 6911 §2.3.
func (p *planner) announced(a *radius.Attribute) error {
	v, err := a.Prefix()
	if err != nil {
		return err
	}
	if v.Addr().IsMulticast() || v.Addr().IsLinkLocalUnicast() || v.Masked() != v {
		return fmt.Errorf("%s is no network", v)
	}
	if err := grow(p, "announced routes", &p.plan.Announced, maxLists); err != nil {
		return err
	}
	p.plan.Announced = append(p.plan.Announced, v)
	return nil
}

// class: RFC 2865 §5.25 sets no bound on their number; we keep as many as a record has room for.
func (p *planner) class(a *radius.Attribute) error {
	if !p.seen["Class"] {
		p.seen["Class"], p.plan.Class = true, nil
	}
	size := len(a.Value)
	for _, c := range p.plan.Class {
		size += len(c)
	}
	if size > maxClass {
		return fmt.Errorf("more than %d octets in all", maxClass)
	}
	p.plan.Class = append(slices.Clip(p.plan.Class), bytes.Clone(a.Value))
	return nil
}

func (p *planner) identity(a *radius.Attribute) error {
	p.plan.CUI = bytes.Clone(a.Value)
	return nil
}

func (p *planner) user(a *radius.Attribute) error {
	p.plan.User = string(a.Value)
	return nil
}

// ratesOnly are values of Filter-Id used for rates: "10M/2M", "rate=512k". No access list has such a name.
var ratesOnly = regexp.MustCompile(`(?i)^([a-z-]+=)?[0-9.]+([kmgt]?(bit|bps)?)(/[0-9.]+([kmgt]?(bit|bps)?))*$`)

// filter is "profile=NAME", "scheduler=NAME", "in=NAME", "out=NAME", "NAME.in", "NAME.out", or an access list for both
// directions.
func (p *planner) filter(a *radius.Attribute) error {
	text := string(a.Value)
	if key, value, ok := strings.Cut(text, "="); ok {
		switch key {
		case "profile", "scheduler":
			return p.setting(key, value, true)
		case "in":
			return p.setting("acl-up", value, true)
		case "out":
			return p.setting("acl-down", value, true)
		}
	}
	if ratesOnly.MatchString(text) {
		return sideError{fmt.Errorf("%q has rates: they come by Mikrotik-Rate-Limit, "+
			"WISPr-Bandwidth-Max-Up and -Down, or subscriber:up and down", clip(text))}
	}
	if key, _, ok := strings.Cut(text, "="); ok {
		return fmt.Errorf("%q: %q is none of profile, scheduler, in, out", clip(text), clip(key))
	}
	if list, ok := strings.CutSuffix(text, ".in"); ok {
		return p.setting("acl-up", list, true)
	}
	if list, ok := strings.CutSuffix(text, ".out"); ok {
		return p.setting("acl-down", list, true)
	}
	return errors.Join(p.setting("acl-up", text, true), p.setting("acl-down", text, true))
}

func (p *planner) portLimit(a *radius.Attribute) (err error) {
	p.plan.Max, err = a.Uint32()
	return err
}

func (p *planner) mtu(a *radius.Attribute) error {
	v, err := a.Uint32()
	if err != nil || v < api.MRUMin || v > 9216 {
		return fmt.Errorf("%d: %d to 9216", v, api.MRUMin)
	}
	p.plan.MTU = uint16(v)
	return nil
}

const (
	up   = 0
	down = 1
)

// bandwidth is in bit/s.
func bandwidth(direction int, of func(*access.Plan) *access.Rate) handler {
	return func(p *planner, a *radius.Attribute) error {
		v, err := a.Uint32()
		if err != nil {
			return err
		}
		p.rate(direction, 1, of(p.plan), access.Rate{CIR: kilobits(uint64(v))})
		return nil
	}
}

// rate sets a rate, unless an attribute of higher rank did.
func (p *planner) rate(direction, rank int, to *access.Rate, v access.Rate) {
	if rank >= p.ranks[direction] {
		p.ranks[direction] = rank
		v.CBS, v.PBS = to.CBS, to.PBS
		*to = v
	}
}

// kilobits rounds up: a rate above nothing is no "no limit".
func kilobits(bits uint64) uint64 { return (bits + 999) / 1000 }

// rateLimit is "rx[/tx] [rx-burst[/tx-burst] …]": rx is from the subscriber. A two-rate meter has a rate and a peak;
// Mikrotik's thresholds, times, priority and least rates are ignored.
func (p *planner) rateLimit(a *radius.Attribute) error {
	word := strings.Fields(string(a.Value))
	if len(word) == 0 {
		return errors.New("is empty")
	}
	var pairs [2][2]uint64 // rate and peak, up and down
	for i, w := range word[:min(len(word), len(pairs))] {
		one := strings.Split(w, "/")
		if len(one) > 2 {
			return fmt.Errorf("%q: needs rx/tx", clip(w))
		}
		for direction := range pairs[i] {
			v, err := mikrotikRate(one[min(direction, len(one)-1)])
			if err != nil {
				return err
			}
			pairs[i][direction] = v
		}
	}
	for direction, to := range []*access.Rate{&p.plan.Up, &p.plan.Down} {
		v := access.Rate{CIR: pairs[0][direction], PIR: pairs[1][direction]}
		if v.PIR != 0 && v.PIR < v.CIR {
			p.leave(a.Type.String(), fmt.Sprintf("%q: the burst's rate is lower than the rate",
				clip(word[1])))
			v.PIR = 0
		}
		p.rate(direction, 0, to, v)
	}
	if len(word) > 2 {
		p.leave(a.Type.String(), fmt.Sprintf("%q: only rates and burst rates are used",
			clip(strings.Join(word[2:], " "))))
	}
	return nil
}

func mikrotikRate(text string) (uint64, error) {
	factor := uint64(1)
	digits := strings.TrimRight(text, "kKmMgG")
	switch strings.ToLower(text[len(digits):]) {
	case "":
	case "k":
		factor = 1e3
	case "m":
		factor = 1e6
	case "g":
		factor = 1e9
	default:
		digits = ""
	}
	v, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no rate", clip(text))
	}
	if v*factor > 8*api.MostRate {
		return 0, fmt.Errorf("%q is more than 8 Tbit/s", clip(text))
	}
	return kilobits(v * factor), nil
}
