// SPDX-License-Identifier: Apache-2.0

// Package intent turns a checked configuration into the objects that the data plane must hold, and finds the least
// change from its present ones.
package intent

import (
	"fmt"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/config"
)

// Object is one (kind, key) with its body, as it goes into API_PUT.
type Object struct {
	Kind   uint32
	Key    api.Key
	Body   []byte
	Digest uint64 // api.BodyDigest(Body)
}

// Name is the key as text.
func (o *Object) Name() string { return api.CString(o.Key[:]) }

// State is all objects, ordered by kind and then as configured: the order of puts.
type State []Object

// Add appends an object made elsewhere (a synth stream of a benchmark); kinds must not decrease.
func (s *State) Add(kind uint32, name string, body []byte) error {
	key, err := api.MakeKey(name)
	if err != nil {
		return err
	}
	return s.add(kind, key, body)
}

func (s *State) add(kind uint32, key api.Key, body []byte) error {
	if len(body) > api.MaxObject {
		return fmt.Errorf("%s: %d bytes do not fit into one message (%d)", api.CString(key[:]), len(body), api.MaxBody)
	}
	if n := len(*s); n > 0 && (*s)[n-1].Kind > kind {
		return fmt.Errorf("%s: kind %d after kind %d", api.CString(key[:]), kind, (*s)[n-1].Kind)
	}
	*s = append(*s, Object{kind, key, body, api.BodyDigest(body)})
	return nil
}

// compiler collects objects and the first error.
type compiler struct {
	*config.Config
	state State
	err   error
}

func (c *compiler) put(kind uint32, name string, body []byte) {
	if err := c.state.Add(kind, name, body); err != nil && c.err == nil {
		c.err = err
	}
}

func (c *compiler) text(field []byte, s string) {
	if err := api.PutCString(field, s); err != nil && c.err == nil {
		c.err = err
	}
}

// Compile makes every object of a configuration. It fails only on what outgrows a message.
func Compile(cfg *config.Config) (State, error) {
	c := &compiler{Config: cfg}
	c.state = make(State, 0, 64+len(cfg.Subscribers))
	c.engine()
	c.ports()
	c.interfaces()
	c.routes()
	c.neighbours()
	c.acl("uplink", &cfg.Firewall.Uplink, true)
	c.acl("downlink", &cfg.Firewall.Downlink, false)
	for i := range cfg.Instances {
		if in := &cfg.Instances[i]; !in.AccessList.Empty() {
			c.acl(api.ACLOfInstance+string(in.Name), &in.AccessList, false)
		}
	}
	c.policers()
	c.schedulers()
	c.instances()
	c.paths()
	c.sessions()
	c.nats()
	c.mirrors()
	c.counters()
	c.nptv6()
	c.clones()
	c.gtsm()
	c.lines()
	c.remarks()
	return c.state, c.err
}

func (c *compiler) gtsm() {
	for _, f := range c.Interfaces {
		if f.GTSM != 0 {
			c.put(api.KindGTSM, string(f.Name), api.Body(&api.GTSM{Hops: uint32(f.GTSM)}))
		}
	}
}

func (c *compiler) remarks() {
	for _, f := range c.Interfaces {
		if f.Remark >= 0 {
			c.put(api.KindRemark, string(f.Name), api.Body(&api.Remark{DSCP: uint32(f.Remark)}))
		}
	}
}

type objectID struct {
	kind uint32
	key  api.Key
}

// Diff lists puts, in the order of want, and deletions, higher kinds first, that turn `held` into `want`. Deleted
// objects have no body.
func Diff(held []api.Digest, want State) (puts, deletes []Object) {
	has := make(map[objectID]uint64, len(held)) // digests
	for i := range held {
		has[objectID{held[i].Kind, held[i].Key}] = held[i].Digest
	}
	for i := range want {
		id := objectID{want[i].Kind, want[i].Key}
		digest, ok := has[id]
		delete(has, id)
		if !ok || digest != want[i].Digest {
			puts = append(puts, want[i])
		}
	}
	for id := range has {
		deletes = append(deletes, Object{Kind: id.kind, Key: id.key})
	}
	slices.SortFunc(deletes, func(a, b Object) int {
		if a.Kind != b.Kind {
			return int(b.Kind) - int(a.Kind)
		}
		return slices.Compare(a.Key[:], b.Key[:])
	})
	return puts, deletes
}
