// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
)

// maxGraceful is the longest period that the Graceful Release Period (TS 29.244 §8.2.78) can say.
const maxGraceful = 310 * time.Hour

// handleRelease asks a CP function to release its association: before this user plane goes out of service.
func (a *Agent) handleRelease(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.ParseUint(cmp.Or(r.URL.Query().Get("graceful"), "0"), 10, 32)
	if err == nil && time.Duration(seconds)*time.Second > maxGraceful {
		err = fmt.Errorf("graceful: %d seconds are more than %d", seconds, int(maxGraceful.Seconds()))
	}
	if err == nil {
		err = a.sessions.Release(r.Context(), r.URL.Query().Get("id"), time.Duration(seconds)*time.Second)
	}
	auth.Did(r.Context(), a.events, "association.release-requested", r.URL.Query().Get("id"), err, "graceful", seconds)
	answer(w, v1.Result{}, err)
}
