// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// For any request the answer is bounded and no internal error, and no client or watch remains beyond the limits.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		"/", "/assets/app.js", "/assets/../../page.go", "/assets/0\xdc", "/page/stream",
		"/page/report.html",
		"/page/table/session?q=0x10&sort=-bps&offset=3&limit=2", "/page/table/route?sort=-resolved",
		"/page/table/neighbour?sort=age_s",
		"/page/table/session?offset=99999999999999999999", "/page/table/session?limit=-1&limit=2",
		"/page/table/%00?q=%ff",
		"/page/table/subscriber?q=10.64.0.7", "/page/subscriber?name=02:00:00:00:ab:07",
		"/page/subscriber?name=ue-00001", "/page/subscriber?name=%3Cscript%3E",
		"/page/table/path?sort=name&q=\u212a",
	} {
		f.Add(seed)
	}
	p := New(&gateway{sessions: 50, homes: 20, mobile: true}, Options{})
	h := p.Handler()
	gone, cancel := context.WithCancel(context.Background())
	cancel() // the stream ends at once
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		r := (&http.Request{Method: "GET", URL: u, Host: "localhost", Header: http.Header{},
			Proto: "HTTP/1.1"}).WithContext(gone)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusInternalServerError || w.Body.Len() > 1<<20 {
			t.Fatalf("%q: %d, %d octets", target, w.Code, w.Body.Len())
		}
		if len(p.hub.clients) > 0 || len(p.watches.of) > maxWatches {
			t.Fatalf("%q: %d clients, %d watched", target, len(p.hub.clients), len(p.watches.of))
		}
	})
}
