// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math/bits"
	"slices"

	"isthmus/api"
)

// Rates that a scheduler takes at any level: 1,000 bytes to 100 gigabytes in a second.
const (
	minRate Rate = 8000
	maxRate Rate = 800e9
)

func schedulable(r Rate) bool { return r.Bytes() >= minRate.Bytes() && r <= maxRate }

func (s *Scheduler) check(k *checker) {
	p := refer(k, s.At, "port", "port", s.Port, k.ports)
	if !schedulable(s.Rate) {
		k.fail(s.At, "rate", "%s is not between %s and %s", s.Rate, minRate, maxRate)
	}
	for _, q := range s.QueueSize {
		if q&(q-1) != 0 {
			k.fail(s.At, "queue_size", "%d is no power of two", q)
		}
	}
	s.precedence(k, "yellow_size", s.YellowSize)
	s.precedence(k, "red_size", s.RedSize)
	s.red(k)
	s.profiles(k)
	s.groups(k)
	signIn := slices.ContainsFunc(k.Access.Ports, func(a AccessPort) bool { return a.Port == s.Port })
	for n := range s.Groups { // sessions come later; of the file's subscribers it is known how many there are
		if p != nil && (p.Role == "core" || signIn) && s.Groups[n].Pipes == 0 {
			k.fail(s.Groups[n].At, "pipes",
				"a core port's subport, and one where subscribers sign in, says for how many sessions it has room")
		}
	}
}

func (s *Scheduler) precedence(k *checker, key string, sizes [4]uint32) {
	for class, size := range sizes {
		if size > s.QueueSize[class] {
			k.fail(s.At, key, "%d is more than the %d packets of a queue of class %d", size,
				s.QueueSize[class], class)
		}
	}
}

func (s *Scheduler) red(k *checker) {
	lines := map[uint8]Line{}
	for _, r := range s.RED {
		once(k, r.At, "class", lines, r.Class, "%d is already in line %d", r.Class)
		if r.Min >= r.Max {
			k.fail(r.At, "min", "%d is not less than max, %d", r.Min, r.Max)
		}
		if r.Class < api.TrafficClasses && uint32(r.Max) > s.QueueSize[r.Class] {
			k.fail(r.At, "max", "%d is more than the %d packets of a queue of class %d", r.Max, s.QueueSize[r.Class],
				r.Class)
		}
	}
}

// has: there is a scheduler with the profile.
func (s *Scheduler) has(profile Name) bool {
	return s != nil && slices.ContainsFunc(s.Profiles, func(p Profile) bool { return p.Name == profile })
}

func (s *Scheduler) profiles(k *checker) {
	named(k, s.Profiles, "name", func(p *Profile) (Name, At) { return p.Name, p.At })
	for i := range s.Profiles {
		p := &s.Profiles[i]
		checkRates(k, p.At, p.Rate, s.Rate, &p.ClassRates)
	}
}

// checkRates compares a level's rate with the one above, and its class rates (filled in when absent) with itself.
func checkRates(k *checker, at At, rate, above Rate, classes *[4]Rate) {
	if !schedulable(rate) {
		k.fail(at, "rate", "%s is not between %s and %s", rate, minRate, maxRate)
		return
	}
	if rate > above {
		k.fail(at, "rate", "%s is more than the port's %s", rate, above)
	}
	if !at.Has("class_rates") && *classes == ([4]Rate{}) {
		*classes = [4]Rate{rate, rate, rate, rate}
	}
	for i, c := range classes {
		if !schedulable(c) || c > rate {
			k.fail(at, "class_rates", "class %d: %s is not between %s and the rate, %s", i, c, minRate, rate)
		}
	}
}

// groups expands the subports' counts and settles rate and worker of each.
func (s *Scheduler) groups(k *checker) {
	total := uint32(0)
	for i := range s.Subports {
		total += max(s.Subports[i].Count, 1)
	}
	if total > api.MaxSubports {
		k.fail(s.At, "subports", "%d subports, at most %d", total, api.MaxSubports)
		return
	}
	names := map[Name]Line{}
	for i := range s.Subports {
		sub := s.Subports[i]
		count := max(sub.Count, 1)
		if sub.Worker >= int(k.Engine.Workers) {
			k.fail(sub.At, "worker", "%d: there are %d workers, numbered from 0", sub.Worker, k.Engine.Workers)
			sub.Worker = -1
		}
		if sub.Rate == 0 && !sub.Has("rate") {
			sub.Rate = s.Rate / Rate(total)
		}
		checkRates(k, sub.At, sub.Rate, s.Rate, &sub.ClassRates)
		if sub.Pipes&(sub.Pipes-1) != 0 {
			sub.Pipes = 1 << bits.Len32(sub.Pipes)
		}
		for n := range count {
			one := sub
			if one.Name != "" && count > 1 {
				one.Name = Name(fmt.Sprintf("%s-%d", sub.Name, n+1))
			}
			if one.Name != "" {
				once(k, sub.At, "name", names, one.Name, "%q is already in line %d", one.Name)
			}
			if one.Worker < 0 {
				one.Worker = len(s.Groups) % int(max(k.Engine.Workers, 1))
			}
			s.Groups = append(s.Groups, one)
		}
	}
}
