// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"testing"

	"isthmus/controlplane/cpuset"
	"isthmus/controlplane/testkit"
)

func TestCPUsOfTheProcess(t *testing.T) {
	with := func(cpus ...int) *cpuset.Machine {
		return &cpuset.Machine{Root: t.TempDir(), Allowed: func() ([]int, error) { return cpus, nil }}
	}
	for _, r := range []struct {
		engine string
		site   Site
		want   string
	}{
		{"cpus: auto", Site{CPUs: with(5)}, "1 [5] workers on CPU 5 (auto: of 5)"},
		{"cpus: auto", Site{CPUs: with(0, 1, 2, 3)}, "3 [1 2 3] workers on CPU 1-3 (auto: of 0-3)"},
		{"cpus: auto, workers: 2", Site{CPUs: with(0, 1, 2, 3)}, "2 [1 2] workers on CPU 1-2 (auto: of 0-3)"},
		{"cpus: auto", Site{CPUs: with(0, 1, 2, 3), Environ: []string{"ISTHMUS_ENGINE_WORKERS=1"}},
			"1 [1] workers on CPU 1 (auto: of 0-3)"},
		{"cpus: auto", Site{CPUs: with(0, 1, 2, 3), Kept: []int{7}},
			"1 [7] workers on CPU 7 (auto: as the data plane runs)"},
		{"cpus: auto, workers: 2", Site{CPUs: with(0, 1, 2, 3), Kept: []int{7}},
			"2 [1 2] workers on CPU 1-2 (auto: of 0-3)"},
		{`cpus: "${CPUS}"`, Site{CPUs: with(0, 1), Environ: []string{"CPUS=auto"}},
			"1 [1] workers on CPU 1 (auto: of 0-1)"},
		{"cpus: auto", Site{}, "1 [] workers on no CPU of their own"},
		{"cpus: [3]", Site{CPUs: with(0, 1)}, "1 [3] "},
		{"workers: 2", Site{CPUs: with(0, 1)}, "2 [] "},
	} {
		c, err := ParseOn(r.site, "x.yaml", []byte("engine: {"+r.engine+"}\n"+base), nil)
		testkit.Must(t, err)
		e := &c.Engine
		testkit.Equal(t, fmt.Sprint(e.Workers, " ", e.CPUs, " ", e.Placed()), r.want, "%s", r.engine)
	}
	for _, r := range []struct {
		engine string
		on     *cpuset.Machine
		want   string
	}{
		{"cpus: auto, workers: 2", with(5),
			"x.yaml:1: engine.cpus: auto: 2 workers, and this process may use CPU 5 alone"},
		{"cpus: auto, workers: 4", with(0, 1, 2, 3), "CPUs 0-3, of which one is left to the control plane"},
		{"cpus: automatic", nil, `x.yaml:1: engine.cpus: needs a list, or the word auto, found "automatic"`},
		{"cpus: -2", nil, "needs a list, or the word auto"},
		{"cpus: [-2]", nil, "-2 is not between -1 and 4095"},
		{"cpus: auto", &cpuset.Machine{Allowed: func() ([]int, error) { return nil, errors.New("no look") }},
			"no look"},
	} {
		_, err := ParseOn(Site{CPUs: r.on}, "x.yaml", []byte("engine: {"+r.engine+"}\n"+base), nil)
		testkit.Refused(t, err, r.want)
	}
}
