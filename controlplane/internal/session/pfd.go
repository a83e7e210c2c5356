// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"

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

// SetPFDs is n4.Sessions'. All or nothing; sessions that use the applications are compiled anew, paced.
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
	changed := map[string]bool{}
	if len(r.Applications) == 0 { // TS 29.244 §6.2.5.2: without contents, all are removed
		for name := range p.pfds {
			changed[name] = true
			p.forgetApplication(name)
		}
	}
	for i := range r.Applications {
		a := &r.Applications[i]
		changed[a.Application] = true
		if len(a.PFDs) == 0 {
			p.forgetApplication(a.Application)
			continue
		}
		p.apps[a.Application], p.pfds[a.Application] = a.PFDs, fresh[a.Application]
		if err := p.store.put(bucketApplications, a.Application, a.PFDs); err != nil {
			p.log.Error("PFDs are not kept for a restart", "error", err)
		}
	}
	p.begin(&release{seids: p.users(changed), stage: p.recompile})
	return nil
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
	for seid, e := range p.x.session {
		s, err := decode(e.data)
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
	e := p.x.session[seid]
	s, err := decode(e.data)
	if err != nil {
		return refuse(pfcp.CauseSystemFailure, 0, err.Error())
	}
	c := p.occupied(s)
	p.put(t, seid, e, c, c)
	return nil
}
