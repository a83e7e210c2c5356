// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"isthmus/controlplane/access"
	"isthmus/controlplane/agent/serve"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/testkit"
	"isthmus/controlplane/view"
)

// answers holds answers against the schemas of the document.
type answers struct {
	compiler *jsonschema.Compiler
	doc      map[string]any
}

func newAnswers(t *testing.T) *answers {
	t.Helper()
	text, err := serve.OpenAPI()
	testkit.Must(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	testkit.Must(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	testkit.Must(t, c.AddResource("openapi.json", doc))
	return &answers{c, doc.(map[string]any)}
}

// validate holds an answer against the document; status 200 or default.
func (a *answers) validate(t *testing.T, method, path, status string, body []byte) error {
	t.Helper()
	escaped := strings.ReplaceAll(path, "/", "~1")
	at := "openapi.json#/paths/" + escaped + "/" + strings.ToLower(method) + "/responses/" + status
	s, err := a.compiler.Compile(at + "/content/application~1json/schema")
	testkit.Must(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	testkit.Must(t, err)
	return s.Validate(v)
}

func (a *answers) check(t *testing.T, method, path, status string, body []byte) {
	t.Helper()
	if err := a.validate(t, method, path, status, body); err != nil {
		t.Errorf("%s %s: %.300s\n%v", method, path, body, err)
	}
}

// fill gives every table of a data plane rows.
func fill(s *dptest.Server) {
	for _, table := range view.Tables {
		s.Fill(table.Rows)
	}
}

const documented = instances + signingIn + "nat_log: {syslog: [127.0.0.1]}\n"

// Every answer of a running agent matches the document.
func TestAnswersAreAsDocumented(t *testing.T) {
	s := dptest.Start(t)
	fill(s)
	a, _ := launchMobile(t, s, t.TempDir(), pfcpConfig(t)+documented)
	dialIn(t, a, "anna", 1)
	loop := a.sessions.SignIns.Loop
	testkit.Must(t, loop.Ask(t.Context(), func() { loop.Frame(&access.Frame{Line: access.Line{Port: "elsewhere"}}) }))
	establish(t, a, 1, "10.1.0.1", "10.45.0.1")
	kernelHas(t, a, "192.0.2.0/24")
	h, doc := a.api.Handler(), newAnswers(t)
	ask := func(method, path, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w
	}
	seen := map[string]bool{}
	for _, test := range []struct{ method, path, query, body string }{
		{"GET", "/v1/status", "", ""}, {"GET", "/v1/events", "", ""}, {"GET", "/v1/whoami", "", ""},
		{"POST", "/v1/config/reload", "", ""}, {"POST", "/v1/config/apply", "?name=x", pfcpConfig(t) + documented},
		{"POST", "/v1/config/apply", "?name=x&dry_run=true", pfcpConfig(t) + documented},
		{"POST", "/v1/config/check", "?name=x", pfcpConfig(t) + documented},
		{"POST", "/v1/stream", "", "[]"}, {"POST", "/v1/stream/start", "?name=t", ""},
		{"POST", "/v1/stream/stop", "?name=t", ""}, {"GET", "/v1/kept", "", ""},
	} {
		w := ask(test.method, test.path+test.query, test.body)
		testkit.FatalIf(t, w.Code != 200, "%s: %d %s", test.path, w.Code, w.Body)
		doc.check(t, test.method, test.path, "200", w.Body.Bytes())
		seen[test.method+" "+test.path] = true
	}
	objects := map[int]string{} // the configuration's, without what the kernel has
	for _, r := range [][3]string{{"GET", "/v1/status", ""},
		{"POST", "/v1/config/check?name=x", pfcpConfig(t) + documented},
		{"POST", "/v1/config/apply?name=x", pfcpConfig(t) + documented}} {
		var is struct{ Objects int }
		testkit.Must(t, json.Unmarshal(ask(r[0], r[1], r[2]).Body.Bytes(), &is))
		objects[is.Objects] = r[1]
	}
	testkit.Equal(t, len(objects), 1, "numbers of objects: %v", objects)
	for _, n := range view.Tables {
		w := ask("GET", "/v1/show/"+n.Name, "")
		testkit.FatalIf(t, w.Code != 200, "%s: %d %s", n.Name, w.Code, w.Body)
		doc.check(t, "GET", "/v1/show/"+n.Name, "200", w.Body.Bytes())
		var rows []any
		json.Unmarshal(w.Body.Bytes(), &rows)
		testkit.ErrorIf(t, n.Fields() != nil && len(rows) == 0 && n.Name != "association",
			"%s has no row to look at", n.Name)
		seen["GET /v1/show/"+n.Name] = true
	}
	for _, path := range []string{"/v1/subscriber/clear?subscriber=anna", "/v1/drain", "/v1/resume"} {
		w := ask("POST", path, "")
		path, _, _ = strings.Cut(path, "?")
		doc.check(t, "POST", path, "200", w.Body.Bytes())
		seen["POST "+path] = true
	}
	w := ask("POST", "/v1/association/release?id=nobody", "")
	testkit.Equal(t, w.Code, 422, "release of nobody")
	doc.check(t, "POST", "/v1/association/release", "default", w.Body.Bytes())
	seen["POST /v1/association/release"] = true
	w = ask("POST", "/v1/trace", `{"eu":"10.45.0.1"}`)
	testkit.ErrorIf(t, w.Code != 422 || !strings.Contains(w.Body.String(), "unknown field"), "%d %s", w.Code, w.Body)
	ask("POST", "/v1/trace", `{"port":"access","seconds":1}`) // which the test's data plane does not know
	testkit.Equal(t, told(t, a, "trace.begun")[0].Fields["query"], any(`{"port":"access","seconds":1}`), "query")
	w = ask("POST", "/v1/trace", `{"stages":["nowhere"]}`)
	testkit.Equal(t, w.Code, 422, "trace of no stage")
	doc.check(t, "POST", "/v1/trace", "default", w.Body.Bytes())
	seen["POST /v1/trace"] = true
	// Texts, and what the tests of the guard look at.
	for _, other := range []string{"GET /v1/config", "GET /v1/openapi.json", "POST /v1/login", "POST /v1/logout"} {
		seen[other] = true
	}
	for path, item := range doc.doc["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			testkit.ErrorIf(t, !seen[strings.ToUpper(method)+" "+path], "%s %s was not asked for", method,
				path)
		}
	}
	testkit.Equal(t, ask("GET", "/v1/openapi.json", "").Code, 200, "the document itself")
	testkit.ErrorIf(t, doc.validate(t, "GET", "/v1/status", "200", []byte(`{"version":1}`)) == nil,
		"another answer is taken")
}
