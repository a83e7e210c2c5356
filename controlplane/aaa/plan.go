// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"isthmus/api"
	"isthmus/controlplane/access"
	"isthmus/controlplane/radius"
)

const (
	maxLists  = 16                // values of one attribute that may come several times
	maxRoutes = api.MaxRoutes - 1 // a delegated prefix is one more
	maxClass  = 2048              // octets of Class: a record of accounting has room for them
	maxLeft   = 64                // of one packet that are reported one by one
	minPeriod = time.Minute
	others    = "others" // in the place of names beyond what is kept
)

// planner lays the attributes of one packet over a plan.
type planner struct {
	plan   *access.Plan
	at     *access.Addresses // of a subscriber on line; nil: of a sign-in
	seen   map[string]bool
	routes []gatewayed // framed routes that name their gateway
	ranks  [2]int      // of the attribute that Up and Down are of: several vendors' may be sent for one rate
	left   []access.Left
	more   int // that were left out, beyond those
}

// gatewayed is a framed route by a gateway: only the subscriber can be it.
type gatewayed struct {
	attribute *radius.Attribute
	route     netip.Prefix
	via       netip.Addr
}

// rule is what is done with an attribute, or with a word of one.
type rule[V any] struct {
	doc string                      // what is used of it
	no  string                      // why no value is served: each refuses
	use func(p *planner, v V) error // an error leaves the plan as it was, or refuses; nil: there is nothing to do
	// tunes: it affects neither access nor the bill, so an unusable value is left out. Otherwise an unusable value
	// refuses the sign-in.
	tunes bool
	one   string // a second one of this name cannot be used; empty: it is a list
	first bool   // the standard lets several come: those behind the first are left out
}

// sideError is of what is left out where a sign-in is concerned.
type sideError struct{ error }

func (e sideError) Unwrap() error { return e.error }

// obey applies a rule.
func obey[V any](p *planner, r rule[V], v V) error {
	if r.no != "" {
		return unsupportedError{r.no}
	}
	if r.use == nil { // says nothing of the service
		return nil
	}
	twice := r.one != "" && p.seen[r.one]
	err := fmt.Errorf("%s was given twice", r.one)
	if !twice {
		err = r.use(p, v)
	}
	switch {
	case err == nil:
		p.seen[r.one] = true
	case r.tunes || twice && r.first:
		err = sideError{err}
	}
	return err
}

// apply lays attributes over the plan of a subscriber that signs in, or is on line with addresses. A change of the
// latter is made whole or not at all: a refusal loses nothing. After an error the plan is invalid.
func apply(plan *access.Plan, list []radius.Attribute, at *access.Addresses) ([]access.Left, error) {
	p := &planner{plan: plan, at: at, seen: map[string]bool{}}
	for i := range list {
		a := &list[i]
		var err error
		if r, known := fields[a.Type]; known {
			err = obey(p, r, a)
		} else {
			err = p.unknown(a.Type)
		}
		if err = p.without(a, err); err != nil {
			return nil, err
		}
	}
	for _, r := range p.routes {
		if p.isSubscriber(r.via) {
			continue
		}
		plan.Routes = slices.DeleteFunc(plan.Routes, func(v netip.Prefix) bool { return v == r.route })
		err := fmt.Errorf("by %s: only the subscriber can be the gateway", r.via)
		if err := p.without(r.attribute, sideError{err}); err != nil {
			return nil, err
		}
	}
	if p.more > 0 {
		p.left = append(p.left, access.Left{What: others, Why: fmt.Sprint(p.more, " more")})
	}
	return p.left, nil
}

// without notes what is left out. An error refuses.
func (p *planner) without(a *radius.Attribute, err error) error {
	var side sideError
	if err == nil {
		return nil
	}
	name := a.Type.String()
	if p.at == nil && errors.As(err, &side) {
		p.leave(name, err.Error())
		return nil
	}
	if strings.HasPrefix(err.Error(), name) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// unknown is an attribute that we do not know.
func (p *planner) unknown(t radius.Type) error {
	if p.at != nil {
		return unsupportedError{"is not known"}
	}
	p.leave(t.String(), "")
	return nil
}

// leave notes the ignored part of an accepted attribute.
func (p *planner) leave(what, why string) {
	if len(p.left) == maxLeft {
		p.more++
		return
	}
	p.left = append(p.left, access.Left{What: what, Why: why})
}

// isSubscriber: an address is the subscriber's own, or of its networks.
func (p *planner) isSubscriber(a netip.Addr) bool {
	if at := p.at; at != nil && (a == at.IPv4 || at.IPv6.Contains(a) || at.Delegated.Contains(a)) {
		return true
	}
	return a == p.plan.IPv4 || p.plan.IPv6.Contains(a) || p.plan.Delegated.Contains(a) ||
		a.Is6() && a.IsLinkLocalUnicast()
}

// grow makes room in a list: one packet's values replace former ones.
func grow[T any](p *planner, what string, list *[]T, most int) error {
	if !p.seen[what] {
		p.seen[what] = true
		*list = nil
	}
	if len(*list) >= most {
		return fmt.Errorf("more than %d of %s", most, what)
	}
	*list = slices.Clip(*list) // a copy of the plan keeps its own
	return nil
}

// clip keeps a hostile value from filling a message.
func clip(s string) string {
	if len(s) > 64 {
		return s[:61] + "..."
	}
	return s
}
