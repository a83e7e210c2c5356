// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/testkit"
)

// counted is an endless body of one byte; Read counts what was asked for.
type counted struct {
	fill byte
	read int64
}

func (c *counted) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = c.fill
	}
	c.read += int64(len(p))
	return len(p), nil
}

// Row M2 of the hostile inputs: 1 GB bodies, deep JSON, YAML that grows, paths that climb. Each is refused, the running
// configuration stays, and memory comes back.
func TestHostileRequests(t *testing.T) {
	s := dptest.Start(t)
	plan, err := plan.Make("small.yaml", []byte(small))
	testkit.Must(t, err)
	a := launch(t, s, plan)
	testkit.Until(t, "ready", ready(a))
	a.api.Upload = 8 << 20 // as good as 64, and much cheaper with the race detector
	server := httptest.NewServer(a.api.Handler())
	defer server.Close()
	var bomb strings.Builder
	bomb.WriteString("engine:\n  cpus: &a0 [1]\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&bomb, "x%d: &a%d [*a%d, *a%d, *a%d, *a%d]\n", i, i, i-1, i-1, i-1, i-1)
	}
	before := memory()
	for _, test := range []struct {
		name, method, path string
		body               io.Reader
	}{
		{"1 GB of YAML", "POST", "/v1/config/apply", io.LimitReader(&counted{fill: 'a'}, 1<<30)},
		{"1 GB of JSON", "POST", "/v1/stream", io.LimitReader(&counted{fill: '['}, 1<<30)},
		{"deep JSON", "POST", "/v1/stream", strings.NewReader(strings.Repeat("[", 1<<20))},
		{"deep objects", "POST", "/v1/stream", strings.NewReader(strings.Repeat(`[{"name":`, 1<<18))},
		{"deep YAML", "POST", "/v1/config/apply", strings.NewReader(strings.Repeat("[", 1<<20))},
		{"YAML aliases", "POST", "/v1/config/apply", strings.NewReader(bomb.String())},
		{"climbing table", "GET", "/v1/show/..%2f..%2f..%2fetc%2fpasswd", nil},
		{"climbing path", "GET", "/v1/../../../etc/passwd", nil},
		{"climbing name", "POST", "/v1/config/apply?name=../../../etc/passwd", strings.NewReader("nonsense")},
		{"climbing verb", "POST", "/v1/stream/..%2fstart", nil},
	} {
		request, err := http.NewRequest(test.method, server.URL+test.path, test.body)
		testkit.Must(t, err)
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil { // the server may hang up on a body that it does not want
			testkit.ErrorIf(t, test.body == nil, "%s: %v", test.name, err)
			continue
		}
		said, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode < 300 || response.StatusCode >= 500 || strings.Contains(string(said), "root:") {
			t.Errorf("%s: %d %.200s", test.name, response.StatusCode, said)
		}
	}
	grown := memory() - before
	testkit.ErrorIf(t, grown > 4<<20, "%d KiB more in use afterwards", grown>>10)
	w := httptest.NewRecorder()
	a.api.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/v1/config", nil))
	testkit.ErrorIf(t, w.Body.String() != small, "the running configuration is now %q", w.Body)
}

// memory is what the heap holds after a collection.
func memory() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
