// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"

	"isthmus/api"
)

// maxRules of a direction: what the data plane takes, below what one message holds.
const maxRules = 65536

// Subscriber is one of a range, with every value of its own settled.
type Subscriber struct {
	Name         string
	From         *SubscriberRange // what the whole range shares
	Worker       uint16
	STag, CTag   uint16
	PPPoESession uint16
	MAC          MAC
	IPv4         netip.Addr   // invalid: none
	IPv6         netip.Prefix // invalid: none
	TEIDUplink   uint32
	TEIDDownlink uint32
	Subport      uint32
	Pipe         uint32
	Profile      Name // empty: the port has no scheduler
	local        netip.Addr
}

// checkSubscribers expands every range, then looks for what two subscribers must not share.
func checkSubscribers(k *checker) {
	total := uint64(0)
	for i := range k.Ranges {
		total += uint64(max(k.Ranges[i].Count, 1))
		if total > uint64(k.Engine.Limits.Sessions) {
			k.fail(k.Ranges[i].At, "count", "%d subscribers so far; engine.limits.sessions is %d",
				total, k.Engine.Limits.Sessions)
			return
		}
	}
	k.Subscribers = make([]Subscriber, 0, total)
	for i := range k.Ranges {
		s := &k.Ranges[i]
		if path, ok := s.check(k); ok {
			s.expand(k, path)
		}
	}
	placePipes(k)
	k.Firewall.Uplink.own(k)
	k.Firewall.Downlink.own(k)
	uniqueNames(k)
	uniqueEndpoints(k)
	uniqueTEIDs(k)
	uniqueAddresses(k)
	givenByPools(k)
}

// own bounds the rules with those per subscriber: each direction has its bound.
func (r *RuleSet) own(k *checker) {
	count := len(r.Rules)
	for i := range k.Subscribers {
		if r.PerSubscriber && k.Subscribers[i].IPv4.IsValid() {
			count++
		}
		if r.PerSubscriber && k.Subscribers[i].IPv6.IsValid() {
			count++
		}
	}
	if count > maxRules {
		k.fail(r.At, "", "%d rules with those per subscriber; at most %d", count, maxRules)
	}
}

// check is of what the range shares; it fills in flows, too. false: not worth expanding.
func (s *SubscriberRange) check(k *checker) (*Path, bool) {
	k.notDynamic(s.At, s.Name)
	port := refer(k, s.At, "port", "port", s.Port, k.ports)
	path := refer(k, s.At, "path", "path", s.Path, k.paths)
	refer(k, s.At, "mirror", "mirror", s.Mirror, k.mirrors)
	refer(k, s.At, "counter", "counter", s.Counter, k.counters)
	refer(k, s.At, "uplink_policer", "policer", s.UplinkPolicer, k.policers)
	refer(k, s.At, "downlink_policer", "policer", s.DownlinkPolicer, k.policers)
	if port != nil && port.Role != "access" {
		k.fail(s.At, "port", "%q is no access port", s.Port)
	}
	if s.TPID != 0x8100 && s.TPID != 0x88a8 {
		k.fail(s.At, "tpid", "0x%x is neither 0x8100 nor 0x88a8", s.TPID)
	}
	if (s.Encap == "qinq-pppoe") != (s.PPPoESession != 0) {
		k.fail(s.At, "pppoe_session", "goes with encap qinq-pppoe: give both or none")
	}
	if !s.IPv4.IsValid() && !s.IPv6.IsValid() {
		k.fail(s.At, "", "a subscriber needs ipv4, ipv6 or both")
	}
	if s.IPv4.IsValid() && !s.IPv4.Is4() {
		k.fail(s.At, "ipv4", "%s is no IPv4 address", s.IPv4)
	}
	if s.IPv6.IsValid() && s.IPv6.Addr().Is4() {
		k.fail(s.At, "ipv6", "%s is no IPv6 prefix", s.IPv6)
	}
	if s.IPv6.hostBits() || s.IPv6.IsValid() && s.IPv6.Bits() < 16 {
		k.fail(s.At, "ipv6", "%s has host bits set or is shorter than /16", s.IPv6)
	}
	s.qosRules(k)
	s.OwnDSCP = s.Has("dscp")
	if !s.Has("qfi_uplink") {
		s.QFIUplink = s.QFI
	}
	if !s.Has("qfi_downlink") {
		s.QFIDownlink = s.QFI
	}
	if s.MRU != 0 && s.MRU < api.MRUMin {
		k.fail(s.At, "mru", "%d is less than %d", s.MRU, api.MRUMin)
	}
	return path, port != nil && path != nil
}

func (s *SubscriberRange) qosRules(k *checker) {
	const mostFilters = 256 // of a session
	filters, seen := 0, map[uint8]bool{}
	for i := range s.QoSRules {
		r := &s.QoSRules[i]
		k.tuple(r.At, r.Source, r.Destination, r.SourcePort.Any() && r.DestinationPort.Any(), r.Protocol)
		refer(k, r.At, "policer", "policer", r.Policer, k.policers)
		if seen[r.Precedence] {
			k.fail(r.At, "precedence", "%d is another rule's as well", r.Precedence)
		}
		seen[r.Precedence] = true
		filters += max(1, len(r.DSCP))
	}
	if filters > mostFilters {
		k.fail(s.At, "qos_rules", "%d filters, each DSCP counted; at most %d", filters, mostFilters)
	}
}

func (s *SubscriberRange) expand(k *checker, path *Path) {
	placer := s.placer(k)
	if placer == nil {
		return
	}
	perSTag := s.PerSTag
	if perSTag == 0 {
		perSTag = 4095 - uint32(s.CTag)
	}
	if uint32(s.CTag)+perSTag-1 > 4094 {
		k.fail(s.At, "per_s_tag", "%d C-tags from %d on go beyond 4094", perSTag, s.CTag)
		return
	}
	if s.Count > 0 && len(s.Name)+1+max(5, len(strconv.Itoa(int(s.Count)))) > 31 {
		k.fail(s.At, "name", "%q leaves no room for the number (31 bytes in all)", s.Name)
		return
	}
	for i := range max(s.Count, 1) {
		h := Subscriber{Name: string(s.Name), From: s, PPPoESession: s.PPPoESession, local: path.Local.Addr}
		if s.Count > 0 {
			h.Name = numbered(string(s.Name), i+1)
		}
		h.CTag = s.CTag + uint16(i%perSTag)
		if key, reason := h.step(s, i, perSTag); key != "" {
			k.fail(s.At, key, "at subscriber %d of %d: %s", i+1, max(s.Count, 1), reason)
			return
		}
		placer(&h, i)
		k.Subscribers = append(k.Subscribers, h)
	}
}

// step advances the values that grow along a range; key and reason name the one out of bounds.
func (h *Subscriber) step(s *SubscriberRange, i, perSTag uint32) (key, reason string) {
	sTag := uint32(s.STag) + i/perSTag
	if sTag > 4094 {
		return "s_tag", "beyond 4094"
	}
	h.STag = uint16(sTag)
	mac := uint64(i) * uint64(s.Step.MAC)
	for b := range s.MAC {
		mac += uint64(s.MAC[b]) << (40 - 8*b)
	}
	if mac>>48 != 0 || mac>>40&1 != 0 {
		return "mac", "no unicast address any more"
	}
	for b := range h.MAC {
		h.MAC[b] = byte(mac >> (40 - 8*b))
	}
	if s.PPPoESession != 0 {
		h.PPPoESession = uint16((uint64(s.PPPoESession)-1+uint64(i)*uint64(s.Step.PPPoESession))%65534) + 1
	}
	up := uint64(s.TEIDUplink) + uint64(i)*uint64(s.Step.TEIDUplink)
	down := uint64(s.TEIDDownlink) + uint64(i)*uint64(s.Step.TEIDDownlink)
	if up>>32 != 0 {
		return "teid_uplink", "beyond 32 bits"
	}
	if down>>32 != 0 {
		return "teid_downlink", "beyond 32 bits"
	}
	h.TEIDUplink, h.TEIDDownlink = uint32(up), uint32(down)
	return h.stepAddresses(s, uint64(i))
}

func (h *Subscriber) stepAddresses(s *SubscriberRange, i uint64) (key, reason string) {
	if s.IPv4.Is4() {
		base := s.IPv4.As4()
		v := uint64(binary.BigEndian.Uint32(base[:])) + i*uint64(s.Step.IPv4)
		if v>>32 != 0 {
			return "ipv4", "beyond 255.255.255.255"
		}
		h.IPv4 = netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(v))))
		if h.IPv4.IsMulticast() || h.IPv4.IsUnspecified() || h.IPv4.IsLoopback() || v == 1<<32-1 {
			return "ipv4", h.IPv4.String() + " is no unicast address"
		}
	}
	if s.IPv6.IsValid() {
		p, ok := nthPrefix(s.IPv6.Prefix, i*uint64(s.Step.IPv6))
		if !ok {
			return "ipv6", "beyond the end of the address space"
		}
		if a := p.Addr(); a.IsMulticast() || a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() {
			return "ipv6", p.String() + " is no global unicast prefix"
		}
		h.IPv6 = p
	}
	return "", ""
}

// nthPrefix is the n-th prefix of the same length after p; false when there is none.
func nthPrefix(p netip.Prefix, n uint64) (netip.Prefix, bool) {
	shift := 128 - p.Bits()
	var addHigh, addLow uint64
	switch {
	case shift == 0:
		addLow = n
	case shift < 64:
		addLow, addHigh = n<<shift, n>>(64-shift)
	default:
		addHigh = n << (shift - 64)
		if addHigh>>(shift-64) != n {
			return p, false
		}
	}
	b := p.Addr().As16()
	low, carry := bits.Add64(binary.BigEndian.Uint64(b[8:]), addLow, 0)
	high, carry := bits.Add64(binary.BigEndian.Uint64(b[:8]), addHigh, carry)
	if carry != 0 {
		return p, false
	}
	binary.BigEndian.PutUint64(b[8:], low)
	binary.BigEndian.PutUint64(b[:8], high)
	return netip.PrefixFrom(netip.AddrFrom16(b), p.Bits()), true
}

// numbered is fmt.Sprintf("%s-%05d"), which takes most of the time with 64 K of them.
func numbered(name string, n uint32) string {
	b := make([]byte, 0, 32)
	b = append(append(b, name...), '-')
	for limit := uint32(10000); limit > n; limit /= 10 {
		b = append(b, '0')
	}
	return string(strconv.AppendUint(b, uint64(n), 10))
}

// where returns what chooses the subport of each subscriber of a range, and their profile; nil when that was refused.
func (s *SubscriberRange) where(k *checker, sched *Scheduler) (func(i uint32) uint32, Name) {
	if len(sched.Groups) == 0 || len(sched.Profiles) == 0 {
		return nil, "" // already refused
	}
	profile := sched.Profiles[0].Name
	if s.Scheduler.Profile != "" {
		profile = s.Scheduler.Profile
		if !sched.has(profile) {
			k.fail(s.Scheduler.At, "profile", "the scheduler of port %q has no profile %q", s.Port, profile)
			return nil, ""
		}
	}
	groups := uint64(len(sched.Groups))
	switch where := string(s.Scheduler.Subport); where {
	case "", "by-name":
		return func(uint32) uint32 { return byName }, profile
	case "round-robin":
		return func(i uint32) uint32 { return uint32(uint64(i) % groups) }, profile
	case "block":
		count := uint64(max(s.Count, 1))
		return func(i uint32) uint32 { return uint32(uint64(i) * groups / count) }, profile
	default:
		fixed := slices.IndexFunc(sched.Groups, func(g Subport) bool { return string(g.Name) == where })
		if n, err := strconv.Atoi(where); fixed < 0 && err == nil && n >= 0 && n < len(sched.Groups) {
			fixed = n
		}
		if fixed < 0 {
			k.fail(s.Scheduler.At, "subport", "the scheduler of port %q has no subport %q (0 to %d, or a name)",
				s.Port, where, groups-1)
			return nil, ""
		}
		return func(uint32) uint32 { return uint32(fixed) }, profile
	}
}

// placer assigns each subscriber of a range its worker, or with a scheduler its subport (placePipes does the rest). The
// name decides, not the place in the file: other subscribers do not affect it.
func (s *SubscriberRange) placer(k *checker) func(h *Subscriber, i uint32) {
	workers := uint64(max(k.Engine.Workers, 1))
	sched := k.schedulers[s.Port]
	if sched == nil {
		if s.Has("scheduler") {
			k.fail(s.At, "scheduler", "port %q has no scheduler", s.Port)
			return nil
		}
		return func(h *Subscriber, _ uint32) { h.Worker = uint16(spread(h.Name) % workers) }
	}
	choose, profile := s.where(k, sched)
	if choose == nil {
		return nil
	}
	return func(h *Subscriber, i uint32) { h.Subport, h.Profile = choose(i), profile }
}

// clash reports two subscribers that share what they must not. One report per entry and kind is enough.
func (h *Subscriber) clash(k *checker, first *Subscriber, reported map[*SubscriberRange]bool, key, what string) {
	if reported[h.From] {
		return
	}
	reported[h.From] = true
	k.fail(h.From.At, key, "%s of %s is also that of %s, line %d", what, h.Name, first.Name, first.From.Line(key))
}

// unique finds subscribers that share what of returns.
func unique[K comparable](k *checker, key string, of func(*Subscriber) (K, string)) {
	seen := make(map[K]int32, len(k.Subscribers))
	reported := map[*SubscriberRange]bool{}
	for i := range k.Subscribers {
		h := &k.Subscribers[i]
		id, what := of(h)
		if first, twice := seen[id]; twice {
			if what == "" {
				what = fmt.Sprint(key, " ", id)
			}
			h.clash(k, &k.Subscribers[first], reported, key, what)
			continue
		}
		seen[id] = int32(i)
	}
}

func uniqueNames(k *checker) {
	unique(k, "name", func(h *Subscriber) (string, string) { return h.Name, "the name" })
}

func uniqueEndpoints(k *checker) {
	type endpoint struct {
		port         Name
		sTag, cTag   uint16
		pppoeSession uint16
		mac          MAC
	}
	unique(k, "mac", func(h *Subscriber) (endpoint, string) {
		return endpoint{h.From.Port, h.STag, h.CTag, h.PPPoESession, h.MAC}, "port, VLAN tags, PPPoE session and MAC"
	})
}

func uniqueTEIDs(k *checker) {
	type fteid struct {
		teid  uint32
		local netip.Addr
	}
	unique(k, "teid_downlink", func(h *Subscriber) (fteid, string) {
		return fteid{h.TEIDDownlink, h.local}, "downlink TEID and local address"
	})
}

// uniqueAddresses finds UE addresses and prefixes that are equal or contain one another, and those of the gateway.
func uniqueAddresses(k *checker) {
	type owned struct {
		prefix netip.Prefix
		by     *Subscriber
	}
	list := make([]owned, 0, 2*len(k.Subscribers))
	for i := range k.Subscribers {
		h := &k.Subscribers[i]
		if h.IPv4.IsValid() {
			list = append(list, owned{netip.PrefixFrom(h.IPv4, 32), h})
			if line, ours := k.addresses[vrfAddress{"", h.IPv4}]; ours {
				k.fail(h.From.At, "ipv4", "%s of %s is an interface's, line %d", h.IPv4, h.Name, line)
			}
		}
		if h.IPv6.IsValid() {
			list = append(list, owned{h.IPv6, h})
		}
	}
	slices.SortStableFunc(list, func(a, b owned) int {
		if c := a.prefix.Addr().Compare(b.prefix.Addr()); c != 0 {
			return c
		}
		return a.prefix.Bits() - b.prefix.Bits()
	})
	reported := map[*SubscriberRange]bool{}
	for i := 1; i < len(list); i++ {
		a, b := &list[i-1], &list[i]
		if !a.prefix.Overlaps(b.prefix) {
			continue
		}
		key := "ipv6"
		if b.prefix.Addr().Is4() {
			key = "ipv4"
		}
		what := fmt.Sprintf("address %s", b.prefix)
		if later := b.by; later.From.Line("") >= a.by.From.Line("") {
			later.clash(k, a.by, reported, key, what)
		} else {
			a.by.clash(k, later, reported, key, what)
		}
		list[i] = *a // the wider one may contain the next as well
	}
}
