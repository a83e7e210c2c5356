// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"net/http"

	"isthmus/controlplane/auth"
)

func (a *Agent) handleClear(w http.ResponseWriter, r *http.Request) {
	who, cause := r.URL.Query().Get("subscriber"), cmp.Or(r.URL.Query().Get("cause"), "admin-reset")
	out, err := a.sessions.SignedIn().Clear(r.Context(), who, cause)
	auth.Did(r.Context(), a.events, "subscriber.cleared", who, err, "cause", cause, "ended", out.Ended)
	answer(w, out, err)
}

func (a *Agent) handleDrain(w http.ResponseWriter, r *http.Request) {
	out, err := a.sessions.SignedIn().Drain(r.Context())
	auth.Did(r.Context(), a.events, "subscriber.drained", "", err, "ended", out.Ended, "accounting", out.Accounting)
	answer(w, out, err)
}
