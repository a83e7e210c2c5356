// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"isthmus/api"
	"isthmus/controlplane/agent/serve"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/testkit"
	"isthmus/controlplane/view"
)

var update = flag.Bool("update", false, "write docs/openapi.json anew")

const documentFile = "../../docs/openapi.json"

// docs/openapi.json is what the types say.
func TestOpenAPIFile(t *testing.T) {
	doc, err := serve.OpenAPI()
	testkit.Must(t, err)
	if *update {
		testkit.Must(t, os.WriteFile(documentFile, doc, 0o644))
	}
	text, err := os.ReadFile(documentFile)
	testkit.Must(t, err)
	testkit.ErrorIf(t, !bytes.Equal(text, doc),
		"docs/openapi.json is old: go test ./controlplane/agent -run OpenAPI -update")
}

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

// rowOf gives a table of a data plane a row of zeros and one of ones, whose texts are "a"; totals are one row.
func rowOf[T any, P api.Row[T]](s *dptest.Server, table uint32) {
	var zero, one T
	ones(reflect.ValueOf(&one).Elem())
	if table == api.TableTotal {
		s.SetTable(table, api.Body[T, P](&one))
		return
	}
	s.SetTable(table, api.AppendRow[T, P](api.Body[T, P](&zero), &one))
}

func ones(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			ones(v.Field(i))
		}
	case v.Kind() == reflect.Array && v.Type().Elem().Kind() == reflect.Uint8:
		v.Index(0).SetUint('a')
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			ones(v.Index(i))
		}
	case v.CanUint():
		v.SetUint(1)
	case v.CanInt():
		v.SetInt(1)
	}
}

func fill(s *dptest.Server) {
	rowOf[api.PortRow](s, api.TablePort)
	rowOf[api.NodeRow](s, api.TableNode)
	rowOf[api.DropRow](s, api.TableDrop)
	rowOf[api.WorkerRow](s, api.TableWorker)
	rowOf[api.SessionRow](s, api.TableSession)
	rowOf[api.RouteRow](s, api.TableRoute)
	rowOf[api.NeighbourRow](s, api.TableNeighbour)
	rowOf[api.ACLRow](s, api.TableACL)
	rowOf[api.SchedulerRow](s, api.TableScheduler)
	rowOf[api.EdgeRow](s, api.TableEdge)
	rowOf[api.SynthRow](s, api.TableSynth)
	rowOf[api.TotalRow](s, api.TableTotal)
	rowOf[api.DropRow](s, api.TablePunt)
	rowOf[api.PathRow](s, api.TablePath)
	rowOf[api.RuleRow](s, api.TableRule)
	rowOf[api.URRRow](s, api.TableURR)
	rowOf[api.InstanceRow](s, api.TableInstance)
	rowOf[api.EventRow](s, api.TableEvent)
	rowOf[api.HolderRow](s, api.TableHolder)
	rowOf[api.NATRow](s, api.TableNAT)
	rowOf[api.NATBlockRow](s, api.TableNATBlock)
	rowOf[api.MirrorRow](s, api.TableMirror)
	rowOf[api.CounterRow](s, api.TableCounter)
	rowOf[api.NPTv6Row](s, api.TableNPTv6)
	rowOf[api.CloneRow](s, api.TableClone)
	rowOf[api.GTSMRow](s, api.TableGTSM)
	rowOf[api.MSSRow](s, api.TableMSS)
	rowOf[api.ChannelRow](s, api.TableChannel)
	rowOf[api.TrafficRow](s, api.TableTraffic)
}

// Every answer of a running agent is as the document says.
func TestAnswersAreAsDocumented(t *testing.T) {
	s := dptest.Start(t)
	fill(s)
	const more = instances + signingIn + "nat_log: {syslog: [127.0.0.1]}\n"
	a, _ := launchMobile(t, s, t.TempDir(), pfcpConfig(t)+more)
	dialIn(t, a, "anna", 1)
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
		{"POST", "/v1/config/reload", "", ""}, {"POST", "/v1/config/apply", "?name=x", pfcpConfig(t) + more},
		{"POST", "/v1/config/check", "?name=x", pfcpConfig(t) + more},
		{"POST", "/v1/stream", "", "[]"}, {"POST", "/v1/stream/start", "?name=t", ""},
		{"POST", "/v1/stream/stop", "?name=t", ""},
	} {
		w := ask(test.method, test.path+test.query, test.body)
		testkit.FatalIf(t, w.Code != 200, "%s: %d %s", test.path, w.Code, w.Body)
		doc.check(t, test.method, test.path, "200", w.Body.Bytes())
		seen[test.method+" "+test.path] = true
	}
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
	for _, path := range []string{"/v1/subscriber/clear?subscriber=anna", "/v1/subscriber/drain"} {
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
