// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/intent"
)

// Diff returns the transaction that turns what is held into what is wanted. Synth streams are test traffic and no part
// of the intent: those that are held stay.
func Diff(held []api.Digest, want intent.State) []dp.Change {
	held = slices.DeleteFunc(slices.Clone(held), func(d api.Digest) bool { return d.Kind == api.KindSynth })
	puts, deletes := intent.Diff(held, want)
	return append(Changes(deletes), Changes(puts)...)
}

// Changes turns objects into changes; an object without body is a deletion.
func Changes(objects []intent.Object) []dp.Change {
	list := make([]dp.Change, len(objects))
	for i := range objects {
		list[i] = dp.Change{Kind: objects[i].Kind, Key: objects[i].Name(), Body: objects[i].Body}
	}
	return list
}
