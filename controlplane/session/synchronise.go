// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"reflect"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/rules"
)

// Link is the connection over which a data plane is brought into step (dp.Client).
type Link interface {
	Committer
	Hello() api.Hello
	dp.Lister
}

// Outcome is what it took. Ended are sessions that the configuration has no network instance for.
type Outcome struct{ Put, Deleted, Refused, Ended int }

// stepper brings a data plane into step with the sessions and the configuration.
type stepper struct {
	*table
	file    *storing
	plans   *planner
	lines   *lines
	reader  *reader
	glances *glances
}

// Attach gives the connection to a data plane that is in step, nil when it is lost: then sessions stay, and new ones
// are refused.
func (p *stepper) Attach(c Committer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.client = c
	p.plans.allDiffer()
	if d, ok := c.(interface{ Hello() api.Hello }); ok {
		p.boot = d.Hello().BootID
		p.lines.tellBoot()
	}
}

// Configure takes a configuration over while the data plane is away.
func (p *stepper) Configure(set *rules.Settings) {
	if reflect.DeepEqual(set, p.Settings()) {
		return
	}
	p.changing.Lock()
	defer p.changing.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _, accept := p.plans.reconfigure(set)
	accept(nil)
}

// Synchronise brings a data plane into step with a configuration. changes are the configuration's own, against its held
// objects; session objects are not among them. With all, as after a connection, the sessions are compared too. Settings
// change once the data plane has accepted the configuration: only then do sessions end or change. Requests wait
// meanwhile, reports and associations do not.
func (p *stepper) Synchronise(ctx context.Context, link Link, set *rules.Settings, all bool,
	changes func(held []api.Digest) []dp.Change) (Outcome, error) {
	// With a million sessions these take seconds, in which requests are carried out.
	p.plans.prepare(set)
	hello := link.Hello()
	if all && int(hello.Objects) >= p.glances.Count("") { // else most is to be sent in any case
		p.plans.prepareCompare()
	}
	var held []api.Digest
	var static []api.Digest // of the configuration, which changes in this call alone
	err := dp.EachPage(ctx, link, nil, func(page []api.Digest) {
		for i := range page {
			if !rules.Dynamic(page[i].Kind, api.CString(page[i].Key[:])) {
				static = append(static, page[i])
			}
		}
	})
	if err != nil {
		return Outcome{}, err
	}
	p.changing.Lock()
	defer p.changing.Unlock()
	if all {
		p.reader.resume(hello.BootID)
		if held, err = dp.Held(ctx, link, rules.DynamicKind); err != nil {
			return Outcome{}, err
		}
	}
	same, lost, piped, accept := p.ending(set)
	out := Outcome{Ended: len(lost)}
	own := changes(static)
	if all {
		// A data plane that was away keeps its state. Unwanted sessions go before the objects they use; those
		// that the configuration ends may be missing.
		orphans := p.differences(held).Before
		if _, err := p.send(ctx, link, orphans); err != nil {
			return Outcome{}, err
		}
		for _, part := range orphans {
			held = withoutKeys(held, part)
			out.Deleted += len(part)
		}
		lost, piped = onlyHeld(held, lost), onlyHeld(held, piped)
		if same && slices.ContainsFunc(own, ofScheduler) {
			lost, piped = p.forScheduler(held)
			accept = func(usage []api.Usage) { p.endLines(lost, usage) }
			out.Ended = len(lost)
		}
	}
	usage, err := link.Commit(ctx, slices.Concat(lost, own, piped))
	if err != nil {
		return Outcome{}, err
	}
	p.mu.Lock()
	accept(usage)
	p.mu.Unlock()
	if !all {
		return out, nil
	}
	d := p.differences(withoutKeys(held, lost))
	if out.Refused, err = p.send(ctx, link, d.After); err != nil {
		return Outcome{}, err
	}
	out.Put, out.Deleted = d.Put, out.Deleted+d.Gone
	p.log.Info("sessions in step", "sent", out.Put, "deleted", out.Deleted, "refused", out.Refused)
	p.Attach(link)
	return out, nil
}

func ofScheduler(c dp.Change) bool { return c.Kind == api.KindScheduler }

// ending is reconfigure for a configuration that may be the one in use.
func (p *stepper) ending(set *rules.Settings) (same bool, lost, piped []dp.Change, accept func(usage []api.Usage)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if reflect.DeepEqual(set, p.set) {
		return true, nil, nil, func([]api.Usage) {}
	}
	lost, piped, accept = p.plans.reconfigure(set)
	return false, lost, piped, accept
}

func (p *stepper) differences(held []api.Digest) difference {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.compare(held)
}

// onlyHeld leaves the changes of sessions that are held.
func onlyHeld(held []api.Digest, changes []dp.Change) []dp.Change {
	has := make(map[string]bool, len(held))
	for i := range held {
		if held[i].Kind == api.KindSession {
			has[api.CString(held[i].Key[:])] = true
		}
	}
	return slices.DeleteFunc(changes, func(ch dp.Change) bool { return !has[ch.Key] })
}

// withoutKeys leaves out what was deleted since the list was made.
func withoutKeys(held []api.Digest, deleted []dp.Change) []api.Digest {
	if len(deleted) == 0 {
		return held
	}
	gone := make(map[string]bool, len(deleted))
	for i := range deleted {
		gone[deleted[i].Key] = deleted[i].Kind == api.KindSession
	}
	return slices.DeleteFunc(held, func(d api.Digest) bool {
		return d.Kind == api.KindSession && gone[api.CString(d.Key[:])]
	})
}
