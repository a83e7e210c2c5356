// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http"
	"strings"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/events"
	"isthmus/controlplane/openapi"
	"isthmus/controlplane/trace"
	"isthmus/controlplane/view"
)

// endpoint is an operation of the API and what serves it. The mux and the OpenAPI document are made of the same list.
type endpoint struct {
	openapi.Operation
	role  auth.Role
	serve http.HandlerFunc
}

func text(name, says string) openapi.Parameter {
	return openapi.Parameter{Name: name, Text: says, Type: "string"}
}

func whole(name, says string) openapi.Parameter {
	return openapi.Parameter{Name: name, Text: says, Type: "integer"}
}

func truth(name, says string) openapi.Parameter {
	return openapi.Parameter{Name: name, Text: says, Type: "boolean"}
}

// routes are all but those of tables. document is what /v1/openapi.json answers.
func (a *API) routes(document []byte) []endpoint {
	op := func(method, path, id, summary string, answer any, query ...openapi.Parameter) openapi.Operation {
		return openapi.Operation{Method: method, Path: path, ID: id, Summary: summary, Answer: answer,
			Query: query}
	}
	media := func(o openapi.Operation, body, answer string) openapi.Operation {
		o.BodyMedia, o.Media = body, answer
		return o
	}
	streams := op("POST", "/v1/stream", "loadStreams", "add or remove test traffic on synth ports", v1.Result{})
	streams.Body = []v1.Stream{}
	follow := op("POST", "/v1/trace", "trace",
		"follow packets: lines of JSON until the trace or the connection ends",
		trace.Update{})
	follow.Body, follow.Media = trace.Query{}, "application/jsonl"
	dry := truth(dryRun, "go through all that may fail before the data plane's commit, say what would change, and "+
		"change nothing")
	return []endpoint{
		{op("GET", "/v1/status", "status", "the state of control plane and data plane", v1.Status{}), auth.Read,
			func(w http.ResponseWriter, _ *http.Request) { answer(w, a.status(), nil) }},
		{op("GET", "/v1/events", "events",
			"what happened, oldest first; with Accept: text/event-stream a stream of server-sent events",
			events.Page{},
			text("after", "id or BOOT-ID of the last event known; the header Last-Event-ID does the same"),
			openapi.Parameter{Name: "kind", Text: "a kind of event, or its first word", Type: "string",
				Many: true},
			whole("limit", "events at most, 1,000 in any case; next leads on"),
			openapi.Parameter{Name: "live", Text: "of a stream: only events from now on",
				Type: "boolean"}),
			auth.Read, a.handleEvents},
		{media(op("GET", "/v1/config", "config",
			"the text of the running configuration, without secrets and comments", nil,
			truth("effective", "as it is in effect: one document, with drop-ins, the environment's values and "+
				"the chosen CPUs")), "",
			"application/yaml"),
			auth.Read, a.handleConfig},
		{media(op("POST", "/v1/config/apply", "applyConfig",
			"make a text the running configuration, or change nothing",
			v1.Result{}, text("name", "of the text, for messages"), dry), "application/yaml", ""), auth.Operate,
			a.handleApply},
		{media(op("POST", "/v1/config/check", "checkConfig",
			"say what a text would be in place of the running configuration", v1.Checked{},
			text("name", "of the text, for messages")), "application/yaml", ""), auth.Read, a.handleCheck},
		{op("POST", "/v1/config/reload", "reloadConfig", "read the control plane's own file again",
			v1.Result{}, dry), auth.Operate, a.handleReload},
		{op("GET", "/v1/kept", "kept",
			"where the control plane's machine has the files that outlive it, for isthmus backup", v1.Kept{}),
			auth.Operate, func(w http.ResponseWriter, _ *http.Request) {
				kept, err := a.Kept()
				answer(w, kept, err)
			}},
		{op("POST", "/v1/association/release", "releaseAssociation",
			"ask a CP function to release its association",
			v1.Result{}, text("id", "its node id"), whole("graceful", "seconds that it has")), auth.Operate,
			a.handleRelease},
		{op("POST", "/v1/subscriber/clear", "clearSubscriber",
			"end the sessions of subscribers who signed in", v1.Cleared{},
			text("subscriber", "name, MAC, IP address, circuit id, line or Acct-Session-Id"),
			text("cause", "of accounting (RFC 2866), such as admin-reset, the default")), auth.Operate,
			a.handleClear},
		{op("POST", "/v1/drain", "drain",
			"withdraw announcements, end subscribers who signed in, have associations over PFCP released; "+
				"it waits for them, and a minute for accounting",
			v1.Drained{}, openapi.Parameter{Name: "keep", Text: "announcements stay", Type: "boolean"},
			whole("graceful", "seconds that CP functions get for their sessions, at most 90")),
			auth.Operate, a.handleDrain},
		{op("POST", "/v1/resume", "resume", "take back what a drain did", v1.Result{}), auth.Operate, a.handleResume},
		{follow, auth.Operate, a.handleTrace},
		{streams, auth.Operate, a.handleStreams},
		a.verb("start"), a.verb("stop"),
		{op("GET", "/v1/whoami", "whoami", "what the client may do", auth.Self{}), auth.None, auth.WhoAmI},
		{media(op("GET", "/v1/openapi.json", "openapi", "this document", nil), "",
			"application/openapi+json"), auth.None,
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/openapi+json")
				w.Write(document)
			}},
	}
}

// verb is the operation that starts or stops test traffic.
func (a *API) verb(verb string) endpoint {
	o := openapi.Operation{Method: "POST", Path: "/v1/stream/" + verb, ID: verb + "Stream",
		Summary: verb + " test traffic", Answer: v1.Result{},
		Query: []openapi.Parameter{text("name", "of one stream; absent: all")}}
	return endpoint{o, auth.Operate, func(w http.ResponseWriter, r *http.Request) { a.handleStream(w, r, verb) }}
}

// showOperation is the operation of a table; they share one handler.
func showOperation(t *view.Table) openapi.Operation {
	o := openapi.Operation{Method: "GET", Path: "/v1/show/" + t.Name, Summary: t.Short, Answer: t.Answer,
		Role: auth.Read.String()}
	for _, word := range strings.Split(t.Name, "-") {
		o.ID += strings.ToUpper(word[:1]) + word[1:]
	}
	o.ID = "show" + o.ID
	fields := t.Fields()
	if t.Key {
		o.Query = append(o.Query, text("key", "the name of one object"))
	}
	if len(fields) == 0 {
		return o
	}
	o.Headers = map[string]string{v1.NextAfter: "There are more rows: `after` for the next request."}
	o.Query = append(o.Query, whole("limit", "rows at most; 0: all"),
		text("after", "rows to pass over, from "+v1.NextAfter))
	o.Query = append(o.Query, openapi.Parameter{Name: "where", Names: fields,
		Text: "FIELD=VALUE, with VALUE, TEXT*, *TEXT, *TEXT*, !VALUE, <NUMBER or >NUMBER; all conditions hold"})
	return o
}

// OpenAPI returns the document of the API; it is the same for all agents.
func OpenAPI() ([]byte, error) {
	operations := []openapi.Operation{{Method: "POST", Path: auth.LoginPath, ID: "login", Answer: auth.Self{},
		Summary: "exchange a token for a cookie, by TCP; also as a form", Body: auth.Given{}},
		{Method: "POST", Path: auth.LogoutPath, ID: "logout", Answer: auth.Self{},
			Summary: "end the cookie's life"}}
	for _, r := range new(API).routes(nil) {
		if r.role != auth.None {
			r.Role = r.role.String()
		}
		operations = append(operations, r.Operation)
	}
	for _, t := range view.Tables {
		operations = append(operations, showOperation(t))
	}
	return openapi.Document("Isthmus", "1", operations, v1.Failure{})
}

// mux serves the operations to clients whose identity is known (auth.From).
func (a *API) mux() *http.ServeMux {
	document, err := OpenAPI()
	if err != nil {
		a.Log.Error("no document of the API", "error", err)
	}
	mux := http.NewServeMux()
	for _, r := range a.routes(document) {
		mux.Handle(r.Method+" "+r.Path, auth.Require(r.role, r.serve))
	}
	mux.Handle("GET /v1/show/{table}", auth.Require(auth.Read, http.HandlerFunc(a.handleShow)))
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) {
		auth.Refuse(w, http.StatusNotFound, "there is no such request")
	})
	return mux
}
