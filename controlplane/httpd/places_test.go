// SPDX-License-Identifier: Apache-2.0

package httpd

import (
	"context"
	"testing"

	"isthmus/controlplane/testkit"
)

// A client with its full share leaves places to others; returned places are free again.
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

// A waiting client gets the returned place; a cancelled one does not.
func TestPlacesWait(t *testing.T) {
	p := NewPlaces(2)
	first, second := p.Wait(t.Context(), "one"), p.Wait(t.Context(), "two")
	testkit.FatalIf(t, first == nil || second == nil, "two places are not two")
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan bool, 2)
	for _, c := range []context.Context{ctx, t.Context()} {
		go func() { got <- p.Wait(c, "three") != nil }()
	}
	cancel()
	testkit.ErrorIf(t, testkit.Receive(t, got), "a place where there is none")
	first()
	testkit.ErrorIf(t, !testkit.Receive(t, got), "the place given back is not for who waits")
	testkit.Equal(t, p.Held(), 2, "held")
}
