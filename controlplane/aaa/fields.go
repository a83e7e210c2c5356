// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"net/netip"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/radius"
)

// on is the rule of an attribute.
type on = rule[*radius.Attribute]

// fields are the attributes that we know; docs/reference/radius.md is made of them.
var fields = map[radius.Type]on{
	radius.FramedIPAddress: {use: (*planner).ipv4, one: "an IPv4 address",
		doc: "Address; 255.255.255.254 and 255.255.255.255: of the pool."},
	radius.FramedIPNetmask: {use: (*planner).netmask, tunes: true, one: "a netmask",
		doc: "By DHCP: option 1, instead of the pool's. PPP has none."},
	radius.FramedIPv6Prefix: {use: prefix(func(p *access.Plan) *netip.Prefix { return &p.IPv6 }),
		one: "an IPv6 prefix", first: true,
		doc: "By router advertisement a /64, of a shorter one the first; all of it is routed to the subscriber."},
	radius.DelegatedIPv6Prefix: {use: prefix(func(p *access.Plan) *netip.Prefix { return &p.Delegated }),
		one: "a delegated prefix", first: true, doc: "By DHCPv6."},
	radius.FramedIPv6Address: {use: (*planner).ipv6, one: "an IPv6 prefix", first: true,
		doc: "By DHCPv6, instead of a prefix."},
	radius.FramedInterfaceId: {use: (*planner).interfaceID, one: "an interface identifier", doc: "Of IPv6CP."},
	radius.FramedPool:        {use: name("pool", pool4), one: "pool", doc: ofPools},
	radius.FramedIPv6Pool:    {use: name("IPv6 pool", pool6), one: "IPv6 pool", first: true, doc: ofPools},
	radius.StatefulIPv6AddressPool: {use: name("IPv6 pool", pool6), one: "IPv6 pool", first: true,
		doc: ofPools},
	radius.DelegatedIPv6PrefixPool: {use: name("pool of prefixes", poolPD), one: "pool of prefixes",
		doc: ofPools},
	radius.DNSServerIPv6Address: {use: (*planner).dns, tunes: true, doc: nameServers},
	radius.MSPrimaryDNSServer:   {use: (*planner).dns, tunes: true, doc: nameServers},
	radius.MSSecondaryDNSServer: {use: (*planner).dns, tunes: true, doc: nameServers},
	radius.FramedRoute: {use: (*planner).route, tunes: true,
		doc: "Network behind the subscriber. The gateway is its address or 0.0.0.0. Without a length that of its " +
			"class. 15 routes of both families."},
	radius.FramedIPv6Route: {use: (*planner).route, tunes: true,
		doc: "The same for IPv6; the gateway may be link-local."},
	radius.RouteIPv6Information: {use: (*planner).announced, tunes: true,
		doc: "Route in router advertisements (RFC 4191), 16."},
	radius.SessionTimeout: {use: seconds(0, access.SessionTimeoutSetting,
		func(p *access.Plan) *time.Duration { return &p.SessionTimeout }), one: "Session-Timeout",
		doc: anySeconds},
	radius.IdleTimeout: {use: seconds(0, access.IdleTimeoutSetting,
		func(p *access.Plan) *time.Duration { return &p.IdleTimeout }), one: "Idle-Timeout", doc: anySeconds},
	radius.AcctInterimInterval: {use: seconds(minPeriod, access.InterimSetting,
		func(p *access.Plan) *time.Duration { return &p.Interim }), tunes: true, one: "Acct-Interim-Interval",
		doc: "Seconds, at least 60; 0: none."},
	radius.Class: {use: (*planner).class, tunes: true,
		doc: "Sent back in accounting, 2,048 octets in all."},
	radius.ChargeableUserIdentity: {use: (*planner).identity, one: "Chargeable-User-Identity", doc: inAccounting},
	radius.UserName:               {use: (*planner).user, one: "User-Name", doc: inAccounting},
	radius.FilterId: {use: (*planner).filter,
		doc: "Access list: `NAME` both directions, `NAME.in` or `in=NAME` from the subscriber, `NAME.out` or " +
			"`out=NAME` to it. Also `profile=NAME`, `scheduler=NAME`. Rates (`10M/2M`) are left out."},
	radius.PortLimit: {use: (*planner).portLimit, one: "Port-Limit", doc: "Sessions of one user name."},
	radius.FramedMTU: {use: (*planner).mtu, tunes: true, one: "Framed-MTU", doc: "576 to 9216."},
	radius.WISPrBandwidthMaxUp: {use: bandwidth(up, rateUp), tunes: true, one: "WISPr-Bandwidth-Max-Up",
		doc: wisprRate},
	radius.WISPrBandwidthMaxDown: {use: bandwidth(down, rateDown), tunes: true, one: "WISPr-Bandwidth-Max-Down",
		doc: wisprRate},
	radius.WISPrRedirectionURL: {use: func(p *planner, a *radius.Attribute) error {
		return p.setting("redirect", string(a.Value), true)
	}, doc: "URL: captive until a change."},
	radius.MikrotikRateLimit: {use: (*planner).rateLimit, tunes: true, one: "Mikrotik-Rate-Limit",
		doc: "`rx[/tx] [rx-burst[/tx-burst]]`: rx is from the subscriber, bursts are peak rates. Further words are " +
			"left out."},
	radius.CiscoAVPair: {use: (*planner).pair,
		doc: "`subscriber:KEY=VALUE` and the words below. Other words are left out."},

	// RFC 2865 §5.6: an unsupported service is as a reject. Authorize-Only and the like are none that we give.
	radius.ServiceType: {use: only("only Framed is served", serviceFramed), doc: "Framed."},
	// How long or how much: 0 is no limit.
	radius.CiscoMaximumTime: {use: only(noTime, 0), doc: onlyZero}, radius.CiscoIdleLimit: {use: only(noTime, 0),
		doc: onlyZero},
	radius.WISPrSessionTerminateEndOfDay: {use: only(noTime, 0), doc: onlyZero},
	radius.MikrotikRecvLimit:             {use: only(noVolume, 0), doc: noQuota},
	radius.MikrotikRecvLimitGigawords:    {use: only(noVolume, 0), doc: noQuota},
	radius.MikrotikXmitLimit:             {use: only(noVolume, 0), doc: noQuota},
	radius.MikrotikXmitLimitGigawords:    {use: only(noVolume, 0), doc: noQuota},
	radius.MikrotikTotalLimit:            {use: only(noVolume, 0), doc: noQuota},
	radius.MikrotikTotalLimitGigawords:   {use: only(noVolume, 0), doc: noQuota},

	// Values that ask for nothing; others are left out.
	radius.FramedProtocol: {use: only("only PPP is served", protocolPPP), tunes: true, doc: "PPP."},
	radius.FramedRouting:  {use: only("no routing protocol is spoken", 0), tunes: true, doc: "0."},
	radius.TerminationAction: {use: only("no request is sent at the end", 0), tunes: true,
		doc: "0."},

	// Nothing of the service: what the packet needs, what names the session, keys of MPPE (RFC 3079), which PPPoE
	// has no use for.
	radius.MessageAuthenticator: {doc: ofPacket}, radius.State: {doc: ofPacket}, radius.ProxyState: {doc: ofPacket},
	radius.EventTimestamp: {doc: ofPacket}, radius.ReplyMessage: {doc: "A message of PPP."},
	radius.CalledStationId: {doc: ofSession}, radius.NASPortType: {doc: ofSession},
	radius.AcctMultiSessionId: {doc: ofSession}, radius.FramedCompression: {doc: "Nothing: there is none."},
	radius.MSCHAP2Success: {doc: ofMSCHAP}, radius.MSCHAPError: {doc: ofMSCHAP}, radius.MSCHAPDomain: {doc: ofMSCHAP},
	radius.MSMPPEEncryptionPolicy: {doc: ofMPPE}, radius.MSMPPERecvKey: {doc: ofMPPE},
	radius.MSMPPESendKey: {doc: ofMPPE},
}

// Of several attributes.
const (
	ofPools      = "A pool of `pools`."
	nameServers  = "Name server, in the order as sent, 16 in all."
	anySeconds   = "Seconds; 0: none, whatever the profile has."
	inAccounting = "Sent back in accounting."
	wisprRate    = "bit/s; before Mikrotik's."
	onlyZero     = "0. Others: Session-Timeout, Idle-Timeout are kept."
	noQuota      = "0. Others: `subscriber:quota` is kept."
	ofPacket     = "Of the packet."
	ofSession    = "Nothing: it names a session."
	ofMSCHAP     = "Of MS-CHAPv2."
	ofMPPE       = "Nothing: PPPoE is not encrypted."
)

// never are attributes of which no value is served, by what we say of them.
var never = map[string][]radius.Type{
	// RFC 2868 §3.1: a tunnel type that we do not support is as a reject.
	noTunnel: {radius.TunnelType, radius.TunnelMediumType, radius.TunnelClientEndpoint, radius.TunnelServerEndpoint,
		radius.TunnelPassword, radius.TunnelPrivateGroupId, radius.TunnelAssignmentId, radius.TunnelPreference,
		radius.TunnelClientAuthId, radius.TunnelServerAuthId, radius.ERXTunnelVirtualRouter,
		radius.ERXTunnelPassword, radius.ERXTunnelNasPortMethod, radius.ERXTunnelTos,
		radius.ERXTunnelMaximumSessions, radius.ERXTunnelInterfaceId, radius.ERXTunnelGroup,
		radius.ERXTunnelSwitchProfile, radius.ERXTunnelTxSpeedMethod},
	noRouter: {radius.ERXVirtualRouterName, radius.ERXIpV6VirtualRouter, radius.ERXRedirectVRName},
	// RFC 4849 §2: filters that cannot be applied refuse; those of vendors, too.
	noFilter: {radius.NASFilterRule, radius.CiscoDataFilter, radius.ERXIngressPolicyName,
		radius.ERXEgressPolicyName,
		radius.ERXIPv6IngressPolicyName, radius.ERXIPv6EgressPolicyName, radius.ERXInputInterfaceFilter},
	noTime: {radius.WISPrSessionTerminateTime},
}

func init() {
	for why, list := range never {
		for _, t := range list {
			fields[t] = on{no: why}
		}
	}
}

const (
	noTunnel = "a tunnel is not served here"
	noRouter = "a virtual router is not served: name a network instance by subscriber:instance"
	noFilter = "cannot be applied: name an access list by Filter-Id"
	noTime   = "is not kept: Session-Timeout and Idle-Timeout are"
	noVolume = "is not kept: subscriber:quota is"
)
