// SPDX-License-Identifier: Apache-2.0

package intent

import "isthmus/api"

// Lookups are the contract's numbers of an instance's lookup.
var Lookups = map[string]uint32{
	"none": api.LookupNone, "destination": api.LookupDestination, "source": api.LookupSource,
}

// instances: the network instances of TS 29.244 clause 8.2.4. Sessions in them come over PFCP.
func (c *compiler) instances() {
	for i := range c.Instances {
		in := &c.Instances[i]
		pools := c.Ends(in)
		body := api.Instance{
			Lookup: Lookups[in.Lookup],
			Flags: flag(in.UEToUE == "drop", api.InstanceNoUEToUE) |
				flag(in.UEToUE == "out", api.InstanceUEOut) | flag(in.PinPeer, api.InstancePinPeer),
			Interfaces: uint32(len(in.Interfaces)), Endpoints: uint32(len(in.Endpoints)), Pools: uint32(len(pools)),
			UDPPort: in.UDPPort, MSS: uint16(in.MSS), QFIDSCP: QFIDSCP(in.QFIDSCP),
		}
		for _, a := range c.PFCP.Infrastructure() {
			body.Guard[body.Guarded] = api.FromAddr(a)
			body.Guarded++
		}
		for n, name := range in.Interfaces {
			c.text(body.Interface[n][:], string(name))
		}
		for n, a := range in.Endpoints {
			body.Endpoint[n] = api.FromAddr(a.Addr)
		}
		for n, p := range pools {
			body.Pool[n] = api.FromPrefix(p)
		}
		c.put(api.KindInstance, string(in.Name), api.Body(&body))
	}
}
