// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/radius"
)

// pair is a Cisco-AVPair: "subscriber:KEY=VALUE" is ours, "ip:dns-servers=ADDRESS ADDRESS" is known; others are left
// alone.
func (p *planner) pair(a *radius.Attribute) error {
	text := string(a.Value)
	if servers, ok := strings.CutPrefix(text, "ip:dns-servers="); ok {
		return p.servers(servers)
	}
	own, ok := strings.CutPrefix(text, "subscriber:")
	if !ok {
		return p.unknown(a.Type)
	}
	key, value, ok := strings.Cut(own, "=")
	if !ok {
		return fmt.Errorf("Cisco-AVPair %q: needs subscriber:KEY=VALUE", clip(text))
	}
	return p.setting(key, value)
}

func (p *planner) servers(list string) error {
	for _, word := range strings.Fields(list) {
		addr, err := netip.ParseAddr(word)
		if err != nil || addr.Zone() != "" {
			return fmt.Errorf("dns-servers: %q is no address", clip(word))
		}
		if err := p.addDNS(addr); err != nil {
			return err
		}
	}
	return nil
}

// settings are what subscriber:KEY=VALUE may name.
var settings = map[string]func(p *planner, value string) error{
	"profile":    word("profile", func(p *access.Plan) *string { return &p.Profile }),
	"scheduler":  word("scheduler", func(p *access.Plan) *string { return &p.Scheduler }),
	"acl-up":     word("access list", func(p *access.Plan) *string { return &p.ACLUp }),
	"acl-down":   word("access list", func(p *access.Plan) *string { return &p.ACLDown }),
	"instance":   word("instance", func(p *access.Plan) *string { return &p.Instance }),
	"path":       word("path", func(p *access.Plan) *string { return &p.Path }),
	"pool":       word("pool", func(p *access.Plan) *string { return &p.Pool4 }),
	"pool6":      word("IPv6 pool", func(p *access.Plan) *string { return &p.Pool6 }),
	"pool-pd":    word("pool of prefixes", func(p *access.Plan) *string { return &p.PoolPD }),
	"up":         rates(up, func(p *access.Plan) *access.Rate { return &p.Up }),
	"down":       rates(down, func(p *access.Plan) *access.Rate { return &p.Down }),
	"up-burst":   bursts(func(p *access.Plan) *access.Rate { return &p.Up }),
	"down-burst": bursts(func(p *access.Plan) *access.Rate { return &p.Down }),
	"quota":      (*planner).quota,
	"redirect":   (*planner).redirectTo,
	"max":        (*planner).limit,
}

func (p *planner) setting(key, value string) error {
	fn := settings[key]
	if fn == nil {
		return fmt.Errorf("subscriber:%s: no such setting", clip(key))
	}
	if err := p.once("subscriber:" + key); err != nil {
		return err
	}
	return fn(p, value)
}

func word(what string, of func(*access.Plan) *string) func(*planner, string) error {
	return func(p *planner, value string) (err error) {
		if value == "" { // the profile's again
			*of(p.plan) = ""
			return nil
		}
		*of(p.plan), err = named(what, value)
		return err
	}
}

// rates are "CIR" or "CIR/PIR", with units as in the configuration; 0: no limit.
func rates(direction int, of func(*access.Plan) *access.Rate) func(*planner, string) error {
	return func(p *planner, value string) error {
		cir, pir, peak := strings.Cut(value, "/")
		var c, top config.Rate
		err := c.UnmarshalText([]byte(cir))
		if err == nil && peak {
			err = top.UnmarshalText([]byte(pir))
		}
		if err != nil {
			return err
		}
		if peak && top < c {
			return fmt.Errorf("rate %q: the peak is lower than the rate", clip(value))
		}
		p.rate(direction, 2, of(p.plan), access.Rate{CIR: kilobits(uint64(c)), PIR: kilobits(uint64(top))})
		return nil
	}
}

// bursts are "CBS" or "CBS/PBS" in bytes.
func bursts(of func(*access.Plan) *access.Rate) func(*planner, string) error {
	return func(p *planner, value string) error {
		committed, peak, both := strings.Cut(value, "/")
		var c, top config.Burst
		err := c.UnmarshalText([]byte(committed))
		if err == nil && both {
			err = top.UnmarshalText([]byte(peak))
		}
		if err == nil && (c.Milli != 0 || top.Milli != 0) {
			err = errors.New("a burst by RADIUS is in bytes, as in 64kB")
		}
		if err != nil {
			return err
		}
		of(p.plan).CBS, of(p.plan).PBS = uint32(c.Size), uint32(top.Size)
		return nil
	}
}

// quota is bytes, with kB, MB, GB.
func (p *planner) quota(value string) error {
	factor := uint64(1)
	for unit, f := range map[string]uint64{"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12} {
		if digits, ok := strings.CutSuffix(value, unit); ok {
			value, factor = digits, f
			break
		}
	}
	v, err := strconv.ParseUint(value, 10, 64)
	if err != nil || v > 1e18/factor {
		return fmt.Errorf("quota %q is no volume such as 50GB", clip(value))
	}
	p.plan.Quota = v * factor
	p.plan.Without.Say(access.QuotaSetting, v == 0)
	return nil
}

func (p *planner) redirectTo(value string) error {
	if value != "" { // none: over
		if err := validURL(value); err != nil {
			return err
		}
	}
	p.plan.Redirect = value
	p.plan.Without.Say(access.RedirectSetting, value == "")
	return nil
}

func (p *planner) limit(value string) error {
	v, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return fmt.Errorf("max %q is no number", clip(value))
	}
	p.plan.Max = uint32(v)
	return nil
}
