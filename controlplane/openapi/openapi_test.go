// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

type inner struct {
	N uint16 `json:"n"`
}

// Cookie is a row.
type Cookie struct {
	A int `json:"a"`
}

type outer struct {
	When    time.Time      `json:"when,omitzero"`
	Maybe   *uint32        `json:"maybe"`
	One     inner          `json:"one"`
	Pointer *inner         `json:"pointer"`
	Many    []inner        `json:"many"`
	Bytes   []byte         `json:"bytes"`
	Any     map[string]any `json:"any"`
	Text    string         `json:"text,omitempty"`
	Ratio   float64        `json:"ratio"`
	Yes     bool           `json:"yes"`
}

func TestSchema(t *testing.T) {
	g := generator{schemas: object{}, types: map[string]reflect.Type{}}
	g.schema(reflect.TypeFor[outer]())
	testkit.Must(t, g.err)
	got, err := json.Marshal(g.schemas["outer"])
	testkit.Must(t, err)
	for _, want := range []string{
		`"when":{"format":"date-time","type":"string"}`, `"maybe":{"minimum":0,"type":["integer","null"]}`,
		`"one":{"$ref":"#/components/schemas/inner"}`,
		`"pointer":{"anyOf":[{"$ref":"#/components/schemas/inner"},{"type":"null"}]}`,
		`"many":{"items":{"$ref":"#/components/schemas/inner"},"type":["array","null"]}`,
		`"bytes":{"contentEncoding":"base64","type":["string","null"]}`,
		`"any":{"additionalProperties":{},"type":["object","null"]}`, `"ratio":{"type":"number"}`,
		`"yes":{"type":"boolean"}`,
		`"required":["any","bytes","many","maybe","one","pointer","ratio","yes"]`,
		`"additionalProperties":false`,
	} {
		testkit.ErrorIf(t, !strings.Contains(string(got), want), "no %s in\n%s", want, got)
	}
}

// An indescribable type is an error, not a hole in the document.
func TestRefused(t *testing.T) {
	for _, bad := range []any{struct{ NoName int }{}, make(chan int), struct {
		F func() `json:"f"`
	}{}} {
		_, err := Document("x", "1", []Operation{{Method: "GET", Path: "/", Answer: bad}}, inner{})
		testkit.Refused(t, err, "openapi: ")
	}
}

func TestOperations(t *testing.T) {
	text, err := Document("x", "1", []Operation{
		{Method: "GET", Path: "/a", ID: "a", Answer: []Cookie{}, Role: "read",
			Headers: map[string]string{"Next": "more"},
			Query: []Parameter{{Name: "n", Type: "integer", Required: true},
				{Name: "k", Type: "string", Many: true}}},
		{Method: "POST", Path: "/a", ID: "b", Body: inner{}, Answer: inner{}},
		{Method: "PUT", Path: "/a", ID: "c", BodyMedia: "application/yaml", Media: "text/plain"},
	}, inner{})
	testkit.Must(t, err)
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Parameters  []any
			Security    []any
			RequestBody struct{ Content map[string]any }
			Responses   map[string]struct {
				Content map[string]struct{ Schema object }
			}
		}
	}
	testkit.Must(t, json.Unmarshal(text, &doc))
	get, put := doc.Paths["/a"]["get"], doc.Paths["/a"]["put"]
	testkit.Equal(t, fmt.Sprint(get.Responses["200"].Content["application/json"].Schema["type"]), "array",
		"a list at the top")
	testkit.ErrorIf(t, len(get.Parameters) != 2 || len(get.Security) != 2 || len(put.Security) != 0, "%+v", get)
	testkit.ErrorIf(t, put.RequestBody.Content["application/yaml"] == nil ||
		doc.Paths["/a"]["post"].OperationID != "b", "%+v", put)
}
