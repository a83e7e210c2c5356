// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"net/http"
	"strings"

	"isthmus/controlplane/auth"
)

// traceRole is the role required for traces, as by the API.
const traceRole = auth.Operate

func (p *Page) mayTrace(client auth.Identity) bool {
	return p.opt.Trace != nil && client.Role >= traceRole
}

var errGone = errors.New("the browser does not read")

// trace sends a session's packets as they come. The source bounds concurrent traces.
func (p *Page) trace(w http.ResponseWriter, r *http.Request) {
	session := r.URL.Query().Get("session")
	if session == "" || len(session) >= maxName {
		refuse(w, http.StatusBadRequest, badName)
		return
	}
	write := eventStream(w)
	if !write([]byte("event: begin\ndata: {}\n\n")) {
		return
	}
	err := p.opt.Trace(r.Context(), session, func(text string) error {
		if !write(textEvent(text)) {
			return errGone
		}
		return nil
	})
	why := "The trace has ended."
	if err != nil {
		why = err.Error()
	}
	write(event("bye", quote(why)))
}

// textEvent writes one server-sent event whose data is text of any number of lines.
func textEvent(text string) []byte {
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(text, "\r", "")) {
		b.WriteString("data: " + strings.TrimSuffix(line, "\n") + "\n")
	}
	b.WriteString("\n")
	return []byte(b.String())
}
