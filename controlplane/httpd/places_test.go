// SPDX-License-Identifier: Apache-2.0

package httpd

import (
	"testing"

	"isthmus/controlplane/testkit"
)

// Who takes all that it gets leaves some to others, and they to others still; what is given back is there again.
func TestPlaces(t *testing.T) {
	p := NewPlaces(32)
	var greedy []func()
	for _, test := range []struct {
		client string
		gets   int
	}{{"greedy", 16}, {"second", 8}, {"third", 4}, {"fourth", 2}, {"fifth", 1}, {"sixth", 1}, {"seventh", 0}} {
		got := 0
		for leave := p.Take(test.client); leave != nil; leave = p.Take(test.client) {
			if got++; test.client == "greedy" {
				greedy = append(greedy, leave)
			}
		}
		testkit.Equal(t, got, test.gets, "%s", test.client)
	}
	testkit.Equal(t, p.Held(), 32, "held")
	for _, leave := range greedy {
		leave()
		leave()
	}
	testkit.Equal(t, p.Held(), 16, "held after the greedy left")
	_, known := p.by["greedy"]
	testkit.ErrorIf(t, known, "a client without places is remembered")
	testkit.ErrorIf(t, p.Take("seventh") == nil, "no place for the seventh")
}
