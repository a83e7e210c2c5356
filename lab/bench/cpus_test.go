// SPDX-License-Identifier: Apache-2.0

package bench

import "testing"

func TestParseCPUs(t *testing.T) {
	for _, test := range []struct {
		in   string
		want int
		ok   bool
	}{{"", 0, true}, {"2,3", 2, true}, {"2-5", 4, true}, {"1,4-5", 3, true}, {"5-2", 0, false}, {"a", 0, false}, {"-1",
		0, false}} {
		list, err := ParseCPUs(test.in)
		if len(list) != test.want || (err == nil) != test.ok {
			t.Errorf("%q: %v, %v", test.in, list, err)
		}
	}
}

func TestChooseCPUs(t *testing.T) {
	for _, test := range []struct {
		wanted        string
		workers, want int
	}{{"none", 1, 0}, {"3,4", 2, 2}, {"", 1, 1}, {"", 5000, 0}, {"", 0, 0}} {
		list, err := ChooseCPUs(test.wanted, test.workers)
		if err != nil || len(list) != test.want {
			t.Errorf("%+v: %v, %v", test, list, err)
		}
	}
}
