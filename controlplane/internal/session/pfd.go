// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"maps"

	"isthmus/api"
	"isthmus/controlplane/internal/pfcp"
	"isthmus/controlplane/internal/sdf"
)

// expandPFDs makes filters of an application's PFDs (TS 29.244 §8.2.39). Only flow descriptions say what a packet looks
// like: names and URLs would have to be found inside of the UE's TLS, which this data plane does not do.
func expandPFDs(list []pfcp.PFD) ([]api.SDF, *pfcp.Error) {
	var all []api.SDF
	for i := range list {
		f := &list[i]
		if f.URL != "" || f.Domain != "" || f.Custom != "" || f.Flow == "" {
			return nil, refuse(pfcp.CauseServiceNotSupported, 61, "PFDs with URLs, domain names or custom contents")
		}
		filters, err := sdf.Flow(f.Flow)
		if err != nil {
			return nil, refuse(pfcp.CauseMandatoryIEIncorrect, 61, err.Error())
		}
		if all = append(all, filters...); len(all) > api.MaxSDF {
			return nil, refuse(pfcp.CauseNoResources, 61, fmt.Sprintf("more than %d filters in one application", api.MaxSDF))
		}
	}
	return all, nil
}

// SetPFDs is n4.Sessions'. All or nothing: also when the filters are too many for a session that is there. Sessions that use
// the applications are compiled anew, paced; one that the data plane refuses then goes on with the filters that it has.
func (p *Plane) SetPFDs(r *pfcp.PFDManagementRequest) *pfcp.Error {
	fresh := map[string][]api.SDF{}
	for i := range r.Applications {
		a := &r.Applications[i]
		filters, err := expandPFDs(a.PFDs)
		if err != nil {
			return err
		}
		fresh[a.Application] = filters
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.roomForPFDs(r); err != nil {
		return err
	}
	changed := p.changedBy(r)
	users := p.users(changed)
	if err := p.bearable(users, r, fresh); err != nil {
		return err
	}
	p.digests = nil
	if len(r.Applications) == 0 { // TS 29.244 §6.2.5.2: without contents, all are removed
		for name := range p.pfds {
			p.forgetApplication(name)
		}
	}
	for i := range r.Applications {
		a := &r.Applications[i]
		if len(a.PFDs) == 0 {
			p.forgetApplication(a.Application)
			continue
		}
		p.apps[a.Application], p.pfds[a.Application] = a.PFDs, fresh[a.Application]
		if err := p.store.put(bucketApplications, a.Application, a.PFDs); err != nil {
			p.log.Error("PFDs are not kept for a restart", "error", err)
		}
	}
	p.begin(&release{seids: users, stage: p.recompile, refused: p.keepsFilters})
	return nil
}

// changedBy are the applications that a request names, or all.
func (p *Plane) changedBy(r *pfcp.PFDManagementRequest) map[string]bool {
	changed := map[string]bool{}
	if len(r.Applications) == 0 {
		for name := range p.pfds {
			changed[name] = true
		}
	}
	for i := range r.Applications {
		changed[r.Applications[i].Application] = true
	}
	return changed
}

// bearable refuses PFDs that would be too many filters for a session which uses them. Fewer are never too many, and an
// application without PFDs matches nothing.
func (p *Plane) bearable(users []uint64, r *pfcp.PFDManagementRequest, fresh map[string][]api.SDF) *pfcp.Error {
	next := maps.Clone(p.pfds)
	for i := range r.Applications {
		if a := &r.Applications[i]; len(a.PFDs) > 0 {
			next[a.Application] = fresh[a.Application]
		}
	}
	for _, seid := range users {
		e, _ := p.x.at(seid)
		s, broken := decode(e.data)
		if broken != nil {
			continue
		}
		if _, was := compile(p.set, p.pfds, s); was != nil {
			continue // it lacks PFDs already: it does not say what it will have
		}
		if _, err := compile(p.set, next, s); err != nil {
			return refuse(pfcp.CauseNoResources, 61, fmt.Sprintf("session %s: %s", Key(seid), err.Text))
		}
	}
	return nil
}

// keepsFilters tells of a session that the data plane refused with new PFDs.
func (p *Plane) keepsFilters(seid uint64, err *pfcp.Error) {
	if p.x.session[seid] == 0 {
		return
	}
	if p.count.FiltersKept++; p.count.FiltersKept == 1 || p.count.FiltersKept%1000 == 0 {
		p.log.Error("a session keeps its filters: the data plane refuses those of the new PFDs", "session", Key(seid), "error", err,
			"times", p.count.FiltersKept)
	}
}

func (p *Plane) roomForPFDs(r *pfcp.PFDManagementRequest) *pfcp.Error {
	limits, more := &p.set.Limits, 0
	for i := range r.Applications {
		a := &r.Applications[i]
		if limits.PFDs > 0 && len(a.PFDs) > limits.PFDs {
			return refuse(pfcp.CauseNoResources, 61, fmt.Sprintf("%d PFDs of one application, at most %d", len(a.PFDs), limits.PFDs))
		}
		if _, known := p.apps[a.Application]; !known && len(a.PFDs) > 0 {
			more++
		}
	}
	if limits.Applications > 0 && len(p.apps)+more > limits.Applications {
		return refuse(pfcp.CauseNoResources, 58, fmt.Sprintf("more than %d applications", limits.Applications))
	}
	return nil
}

func (p *Plane) forgetApplication(name string) {
	delete(p.apps, name)
	delete(p.pfds, name)
	if err := p.store.delete(bucketApplications, name); err != nil {
		p.log.Error("PFDs are not removed from the store", "error", err)
	}
}

// users are the sessions that detect one of the applications.
func (p *Plane) users(apps map[string]bool) []uint64 {
	var list []uint64
	for seid, at := range p.x.session {
		s, err := decode(p.x.open(at).data)
		if err != nil {
			continue
		}
		for i := range s.PDR {
			if apps[s.PDR[i].PDI.Application] {
				list = append(list, seid)
				break
			}
		}
	}
	return list
}

// recompile sends a session again, as it is now. Rules of an application without PFDs match nothing.
func (p *Plane) recompile(t *txn, seid uint64) *pfcp.Error {
	e, _ := p.x.at(seid)
	s, err := decode(e.data)
	if err != nil {
		return refuse(pfcp.CauseSystemFailure, 0, err.Error())
	}
	c := p.occupied(s)
	p.put(t, seid, e, c, c)
	return nil
}
