// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/radius"
)

const (
	maxLists  = 16 // values of one attribute that may come several times
	minPeriod = time.Minute
)

// planner lays the attributes of one packet over a plan.
type planner struct {
	plan     *access.Plan
	unknown  func(t radius.Type) error
	seen     map[string]bool
	gateways []netip.Addr // of framed routes
	ranks    [2]int       // of the attribute that Up and Down are of: several vendors' may be sent for one rate
}

// field is how an attribute changes a plan. An error refuses the sign-in or the change, in words.
type field func(p *planner, a *radius.Attribute) error

var fields = map[radius.Type]field{
	radius.FramedIPAddress:  (*planner).ipv4,
	radius.FramedIPv6Prefix: prefix("an IPv6 prefix", func(p *access.Plan) *netip.Prefix { return &p.IPv6 }),
	radius.DelegatedIPv6Prefix: prefix("a delegated prefix",
		func(p *access.Plan) *netip.Prefix { return &p.Delegated }),
	radius.FramedIPv6Address:       (*planner).ipv6,
	radius.FramedInterfaceId:       (*planner).interfaceID,
	radius.FramedPool:              name("pool", func(p *access.Plan) *string { return &p.Pool4 }),
	radius.FramedIPv6Pool:          name("IPv6 pool", func(p *access.Plan) *string { return &p.Pool6 }),
	radius.StatefulIPv6AddressPool: name("IPv6 pool", func(p *access.Plan) *string { return &p.Pool6 }),
	radius.DelegatedIPv6PrefixPool: name("pool of prefixes", func(p *access.Plan) *string { return &p.PoolPD }),
	radius.DNSServerIPv6Address:    (*planner).dns,
	radius.MSPrimaryDNSServer:      (*planner).dns,
	radius.MSSecondaryDNSServer:    (*planner).dns,
	radius.FramedRoute:             (*planner).route,
	radius.FramedIPv6Route:         (*planner).route,
	radius.RouteIPv6Information:    (*planner).announced,
	radius.SessionTimeout: seconds(0, access.SessionTimeoutSetting,
		func(p *access.Plan) *time.Duration { return &p.SessionTimeout }),
	radius.IdleTimeout: seconds(0, access.IdleTimeoutSetting,
		func(p *access.Plan) *time.Duration { return &p.IdleTimeout }),
	radius.AcctInterimInterval: seconds(minPeriod, access.InterimSetting,
		func(p *access.Plan) *time.Duration { return &p.Interim }),
	radius.Class:                  (*planner).class,
	radius.ChargeableUserIdentity: (*planner).identity,
	radius.FilterId:               (*planner).filter,
	radius.NASFilterRule:          (*planner).filterRule,
	radius.PortLimit:              (*planner).portLimit,
	radius.FramedMTU:              (*planner).mtu,
	radius.WISPrBandwidthMaxUp:    bandwidth(up, 1, func(p *access.Plan) *access.Rate { return &p.Up }),
	radius.WISPrBandwidthMaxDown:  bandwidth(down, 1, func(p *access.Plan) *access.Rate { return &p.Down }),
	radius.WISPrRedirectionURL:    (*planner).redirect,
	radius.MikrotikRateLimit:      (*planner).rateLimit,
	radius.CiscoAVPair:            (*planner).pair,
	radius.UserName:               (*planner).user,
}

// apply lays attributes over a plan. unknown says what to do about one that is no part of a plan. On an error the
// plan is of no use.
func apply(plan *access.Plan, list []radius.Attribute, unknown func(t radius.Type) error) error {
	p := &planner{plan: plan, unknown: unknown, seen: map[string]bool{}}
	for i := range list {
		a := &list[i]
		fn := fields[a.Type]
		var err error
		if fn == nil {
			err = unknown(a.Type)
		} else {
			err = fn(p, a)
		}
		if err != nil {
			return err
		}
	}
	for _, via := range p.gateways {
		if via != plan.IPv4 {
			return fmt.Errorf("a framed route by %s: only the subscriber can be the gateway", via)
		}
	}
	return nil
}

// once refuses a second value of what has one.
func (p *planner) once(what string) error {
	if p.seen[what] {
		return fmt.Errorf("%s was given twice", what)
	}
	p.seen[what] = true
	return nil
}

// grow makes room in a list: what one packet says takes the place of what was there before.
func grow[T any](p *planner, what string, list *[]T) error {
	if !p.seen[what] {
		p.seen[what] = true
		*list = nil
	}
	if len(*list) >= maxLists {
		return fmt.Errorf("more than %d of %s", maxLists, what)
	}
	*list = (*list)[:len(*list):len(*list)] // a copy of the plan keeps its own
	return nil
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
		return fmt.Errorf("%s %s is no host's address", a.Type, addr)
	}
	p.plan.IPv4 = addr
	return p.once("an IPv4 address")
}

func (p *planner) ipv6(a *radius.Attribute) error {
	addr, err := a.Address()
	if err != nil {
		return err
	}
	if addr.IsUnspecified() || addr.IsMulticast() || addr.IsLoopback() || addr.IsLinkLocalUnicast() {
		return fmt.Errorf("%s %s is no host's address", a.Type, addr)
	}
	p.plan.IPv6 = netip.PrefixFrom(addr, 128)
	return p.once("an IPv6 prefix")
}

func prefix(what string, of func(*access.Plan) *netip.Prefix) field {
	return func(p *planner, a *radius.Attribute) error {
		v, err := a.Prefix()
		if err != nil {
			return err
		}
		if v.Bits() == 0 || v.Addr().IsMulticast() || v.Addr().IsLinkLocalUnicast() {
			return fmt.Errorf("%s %s is no subscriber's", a.Type, v)
		}
		*of(p.plan) = v
		return p.once(what)
	}
}

func (p *planner) interfaceID(a *radius.Attribute) error {
	if len(a.Value) != 8 {
		return fmt.Errorf("%s of %d octets", a.Type, len(a.Value))
	}
	p.plan.InterfaceID = binary.BigEndian.Uint64(a.Value)
	return p.once("an interface identifier")
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

func name(what string, of func(*access.Plan) *string) field {
	return func(p *planner, a *radius.Attribute) (err error) {
		if *of(p.plan), err = named(what, string(a.Value)); err != nil {
			return err
		}
		return p.once(what)
	}
}

func seconds(least time.Duration, one access.Setting, of func(*access.Plan) *time.Duration) field {
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
		return p.once(a.Type.String())
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
	if err := grow(p, "DNS servers", &p.plan.DNS); err != nil {
		return err
	}
	p.plan.DNS = append(p.plan.DNS, addr)
	return nil
}

// route is RFC 2865 §5.22: prefix, gateway, metrics. The gateway is the subscriber.
func (p *planner) route(a *radius.Attribute) error {
	word := strings.Fields(string(a.Value))
	if len(word) == 0 {
		return fmt.Errorf("%s is empty", a.Type)
	}
	v, err := netip.ParsePrefix(word[0])
	if err != nil || v.Addr().Is4() != (a.Type == radius.FramedRoute) || v.Masked() != v || v.Bits() == 0 {
		return fmt.Errorf("%s %q: needs a prefix with its length, such as 10.0.0.0/24", a.Type, clip(word[0]))
	}
	if len(word) > 1 {
		via, err := netip.ParseAddr(word[1])
		if err != nil {
			return fmt.Errorf("%s by %q: is no address", a.Type, clip(word[1]))
		}
		if !via.IsUnspecified() {
			p.gateways = append(p.gateways, via)
		}
	}
	if err := grow(p, "framed routes", &p.plan.Routes); err != nil {
		return err
	}
	p.plan.Routes = append(p.plan.Routes, v)
	return nil
}

// announced is RFC 6911 §2.3.
func (p *planner) announced(a *radius.Attribute) error {
	v, err := a.Prefix()
	if err != nil {
		return err
	}
	if v.Addr().IsMulticast() || v.Addr().IsLinkLocalUnicast() || v.Masked() != v {
		return fmt.Errorf("%s %s is no network", a.Type, v)
	}
	if err := grow(p, "announced routes", &p.plan.Announced); err != nil {
		return err
	}
	p.plan.Announced = append(p.plan.Announced, v)
	return nil
}

func (p *planner) class(a *radius.Attribute) error {
	if err := grow(p, "Class", &p.plan.Class); err != nil {
		return err
	}
	p.plan.Class = append(p.plan.Class, append([]byte(nil), a.Value...))
	return nil
}

func (p *planner) identity(a *radius.Attribute) error {
	p.plan.CUI = append([]byte(nil), a.Value...)
	return p.once("Chargeable-User-Identity")
}

func (p *planner) user(a *radius.Attribute) error {
	p.plan.User = string(a.Value)
	return p.once("User-Name")
}

// filter is "profile=NAME", "scheduler=NAME", "in=NAME", "out=NAME", "NAME.in", "NAME.out", or an access list for both
// directions.
func (p *planner) filter(a *radius.Attribute) error {
	text := string(a.Value)
	if key, value, ok := strings.Cut(text, "="); ok {
		switch key {
		case "profile", "scheduler":
			return p.setting(key, value)
		case "in":
			return p.setting("acl-up", value)
		case "out":
			return p.setting("acl-down", value)
		}
		return fmt.Errorf("Filter-Id %q: %q is none of profile, scheduler, in, out", clip(text), clip(key))
	}
	if list, ok := strings.CutSuffix(text, ".in"); ok {
		return p.setting("acl-up", list)
	}
	if list, ok := strings.CutSuffix(text, ".out"); ok {
		return p.setting("acl-down", list)
	}
	return errors.Join(p.setting("acl-up", text), p.setting("acl-down", text))
}

// filterRule: RFC 4849 §2 wants a NAS that cannot apply it to refuse.
func (p *planner) filterRule(a *radius.Attribute) error {
	return fmt.Errorf("%s cannot be applied: name an access list by Filter-Id", a.Type)
}

func (p *planner) portLimit(a *radius.Attribute) (err error) {
	if p.plan.Max, err = a.Uint32(); err != nil {
		return err
	}
	return p.once("Port-Limit")
}

func (p *planner) mtu(a *radius.Attribute) error {
	v, err := a.Uint32()
	if err != nil || v < 576 || v > 9216 {
		return fmt.Errorf("Framed-MTU %d: 576 to 9216", v)
	}
	p.plan.MTU = uint16(v)
	return p.once("Framed-MTU")
}

func (p *planner) redirect(a *radius.Attribute) error { return p.setting("redirect", string(a.Value)) }

const (
	up   = 0
	down = 1
)

// bandwidth is in bit/s.
func bandwidth(direction, rank int, of func(*access.Plan) *access.Rate) field {
	return func(p *planner, a *radius.Attribute) error {
		v, err := a.Uint32()
		if err != nil {
			return err
		}
		p.rate(direction, rank, of(p.plan), access.Rate{CIR: kilobits(uint64(v))})
		return p.once(a.Type.String())
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

// rateLimit is "rx[/tx] [rx-burst[/tx-burst]]": rx is what the subscriber sends. What Mikrotik has behind those two,
// times and thresholds, is no part of a two-rate meter.
func (p *planner) rateLimit(a *radius.Attribute) error {
	word := strings.Fields(string(a.Value))
	if len(word) == 0 || len(word) > 2 {
		return fmt.Errorf("%s %q: needs rx/tx, or rx/tx rx-burst/tx-burst", a.Type, clip(string(a.Value)))
	}
	var rates [2]access.Rate
	for i, w := range word {
		pair := strings.Split(w, "/")
		if len(pair) > 2 {
			return fmt.Errorf("%s %q: needs rx/tx", a.Type, clip(w))
		}
		for direction := range rates {
			v, err := mikrotikRate(pair[min(direction, len(pair)-1)])
			if err != nil {
				return fmt.Errorf("%s: %w", a.Type, err)
			}
			if i == 0 {
				rates[direction].CIR = v
			} else if v > 0 {
				rates[direction].PIR = v
			}
		}
	}
	for i := range rates {
		if rates[i].PIR != 0 && rates[i].PIR < rates[i].CIR {
			return fmt.Errorf("%s %q: the burst's rate is lower than the rate", a.Type,
				clip(string(a.Value)))
		}
	}
	p.rate(up, 0, &p.plan.Up, rates[up])
	p.rate(down, 0, &p.plan.Down, rates[down])
	return p.once(a.Type.String())
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
	return kilobits(v * factor), nil
}

func validURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("redirect %q is no URL of http or https", clip(text))
	}
	return nil
}

// clip keeps a hostile value from filling a message.
func clip(s string) string {
	if len(s) > 64 {
		return s[:61] + "..."
	}
	return s
}
