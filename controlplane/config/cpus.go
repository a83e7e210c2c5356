// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"

	"isthmus/controlplane/cpuset"
)

// wordGiven is the only element of a list of which the file has the word (tag word), until it is chosen.
const wordGiven = -2

const mostWorkers = 16

// chooseCPUs replaces auto by the CPUs of the workers. Those of a running data plane stay: it cannot change them.
func (e *Engine) chooseCPUs(k *checker) {
	if !slices.Equal(e.CPUs, []int{wordGiven}) {
		return
	}
	e.AutoCPUs, e.CPUs = true, nil
	workers := 0 // as many as there are CPUs for
	if e.Has("workers") || slices.ContainsFunc(k.site.Environ, givesWorkers) {
		workers = int(e.Workers)
	}
	if kept := k.site.Kept; len(kept) > 0 && (workers == 0 || workers == len(kept)) {
		e.Workers, e.CPUs, e.WhyCPUs = uint32(len(kept)), slices.Clone(kept), "as the data plane runs"
		return
	}
	if k.site.CPUs == nil {
		return
	}
	var devices []cpuset.Device
	for i := range k.Ports {
		p := &k.Ports[i]
		devices = append(devices, cpuset.Device{Driver: p.Driver, Name: p.Device})
		for _, m := range p.Bond.Members {
			devices = append(devices, cpuset.Device{Driver: m.Driver, Name: m.Device})
		}
	}
	c, err := k.site.CPUs.Choose(devices, workers, mostWorkers)
	if err != nil {
		k.fail(e.At, "cpus", "auto: %s", err)
		return
	}
	e.Workers, e.CPUs, e.WhyCPUs = uint32(len(c.Workers)), c.Workers, c.Why
}

func givesWorkers(variable string) bool {
	return strings.HasPrefix(variable, "ISTHMUS_ENGINE_WORKERS=")
}

// Placed says for people which CPUs auto gave the workers; "" where the file names them.
func (e *Engine) Placed() string {
	switch {
	case !e.AutoCPUs:
		return ""
	case len(e.CPUs) == 0:
		return "workers on no CPU of their own"
	}
	return "workers on CPU " + cpuset.Write(e.CPUs) + " (auto: " + e.WhyCPUs + ")"
}
