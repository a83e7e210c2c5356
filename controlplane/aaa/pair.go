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

// words are the known Cisco-AVPairs, beside subscriber:KEY=VALUE. A word is the part before = (or *, #); of some, only
// its protocol.
var words = map[string]rule[string]{
	"ip:dns-servers": {use: (*planner).servers, tunes: true,
		doc: "Name servers: `ip:dns-servers=9.9.9.9 1.1.1.1`."},
	"vpdn":          {no: noTunnel},
	"ip:vrf-id":     {no: noRouter},
	"ipv6:vrf-id":   {no: noRouter},
	"ip:inacl":      {no: noFilter},
	"ip:outacl":     {no: noFilter},
	"ipv6:inacl":    {no: noFilter},
	"ipv6:outacl":   {no: noFilter},
	"ip:l4redirect": {no: "cannot be applied: subscriber:redirect has a URL"},
	"lcp:interface-config": {use: (*planner).commands,
		doc: "Nothing: with `access-group` or `vrf` refused, else left out."},
}

// commands are of an interface of Cisco's: those of a filter or a VRF cannot be left out.
func (p *planner) commands(value string) error {
	err := fmt.Errorf("%q is no command here", clip(value))
	if strings.Contains(value, "access-group") || strings.Contains(value, "vrf") {
		return err
	}
	return sideError{err}
}

// pair is a Cisco-AVPair: "PROTOCOL:WORD=VALUE".
func (p *planner) pair(a *radius.Attribute) error {
	text := string(a.Value)
	if own, ours := strings.CutPrefix(text, "subscriber:"); ours {
		return p.setting(strings.Cut(own, "="))
	}
	word, value := text, ""
	if at := strings.IndexAny(text, "=*"); at >= 0 {
		word, value = text[:at], text[at+1:]
	}
	word, _, _ = strings.Cut(strings.ToLower(word), "#") // a list's entries have numbers
	protocol, _, _ := strings.Cut(word, ":")
	for _, name := range []string{word, protocol} {
		if r, known := words[name]; known {
			if err := obey(p, r, value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		}
	}
	return sideError{unsupportedError{fmt.Sprintf("%q is not known", clip(word))}}
}

func (p *planner) servers(list string) error {
	for _, word := range strings.Fields(list) {
		addr, err := netip.ParseAddr(word)
		if err != nil || addr.Zone() != "" {
			return fmt.Errorf("%q is no address", clip(word))
		}
		if err := p.addDNS(addr); err != nil {
			return err
		}
	}
	return nil
}

// settings are what subscriber:KEY=VALUE may name; docs/reference/radius.md is made of them.
var settings = map[string]rule[string]{
	"profile": {use: word("profile", func(p *access.Plan) *string { return &p.Profile }),
		doc: "A profile; empty: the default one."},
	"scheduler": {use: word("scheduler", func(p *access.Plan) *string { return &p.Scheduler }), tunes: true,
		doc: "Profile of a pipe; empty: the profile's."},
	"acl-up":     {use: word("access list", func(p *access.Plan) *string { return &p.ACLUp }), doc: ofName},
	"acl-down":   {use: word("access list", func(p *access.Plan) *string { return &p.ACLDown }), doc: ofName},
	"instance":   {use: word("instance", func(p *access.Plan) *string { return &p.Instance }), doc: ofName},
	"path":       {use: word("path", func(p *access.Plan) *string { return &p.Path }), doc: ofName},
	"pool":       {use: word("pool", pool4), doc: ofName},
	"pool6":      {use: word("IPv6 pool", pool6), doc: ofName},
	"pool-pd":    {use: word("pool of prefixes", poolPD), doc: ofName},
	"up":         {use: rates(up, rateUp), tunes: true, doc: ofRate},
	"down":       {use: rates(down, rateDown), tunes: true, doc: ofRate},
	"up-burst":   {use: bursts(rateUp), tunes: true, doc: ofBurst},
	"down-burst": {use: bursts(rateDown), tunes: true, doc: ofBurst},
	"quota": {use: (*planner).quota,
		doc: "Bytes of both directions: `50GB`; 0: none, whatever the profile has."},
	"redirect": {use: (*planner).redirectTo,
		doc: "URL: captive until a change; empty: ends it, of a captive profile too."},
	"portal": {use: (*planner).portal, tunes: true,
		doc: "Prefixes and names that pass meanwhile, blanks between; empty: the profile's."},
	"max": {use: (*planner).limit, doc: "Sessions of one user name."},
}

const (
	ofName  = "A name of the configuration; empty: the profile's."
	ofRate  = "CIR or CIR/PIR: `10Mbit/20Mbit`; before WISPr's."
	ofBurst = "CBS or CBS/PBS in bytes: `64kB`."
)

// setting applies one, if it has a value. Others are Cisco's: a service's, an account's.
func (p *planner) setting(key, value string, given bool) error {
	r, known := settings[key]
	if !known {
		return sideError{fmt.Errorf("subscriber:%s: no such setting", clip(key))}
	}
	r.one = "subscriber:" + key
	if !given {
		r.use = func(*planner, string) error { return errors.New("needs KEY=VALUE") }
	}
	if err := obey(p, r, value); err != nil {
		return fmt.Errorf("%s: %w", r.one, err)
	}
	return nil
}

func word(what string, of func(*access.Plan) *string) func(*planner, string) error {
	return func(p *planner, value string) error {
		if value == "" { // the profile's again
			*of(p.plan) = ""
			return nil
		}
		v, err := named(what, value)
		if err == nil {
			*of(p.plan) = v
		}
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
		if err := config.CheckRedirect(value); err != nil {
			return err
		}
	}
	p.plan.Redirect = value
	p.plan.Without.Say(access.RedirectSetting, value == "")
	return nil
}

// portal is one or more prefixes and names; empty: the profile's again.
func (p *planner) portal(value string) error {
	const most = 16
	var list []string
	for _, word := range strings.Fields(value) {
		var to config.Reachable
		if err := to.UnmarshalText([]byte(word)); err != nil {
			return err
		}
		list = append(list, to.String())
	}
	if len(list) > most {
		return fmt.Errorf("more than %d prefixes and names", most)
	}
	p.plan.Portal = list
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
