// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// docs/openapi.json is what the types say, and a page of it in short.
func TestReferenceAPI(t *testing.T) {
	doc, err := OpenAPI()
	testkit.Must(t, err)
	testkit.Golden(t, filepath.Join(testkit.Top(t), "docs/openapi.json"), string(doc))
	var all struct {
		Paths map[string]map[string]struct {
			Summary, Description string
			Parameters           []struct{ Name, Description string }
			RequestBody          struct{ Content map[string]any }
		}
	}
	testkit.Must(t, json.Unmarshal(doc, &all))
	var rows, parameters [][]string
	for _, path := range slices.Sorted(maps.Keys(all.Paths)) {
		if strings.HasPrefix(path, "/v1/show/") {
			continue // all are alike
		}
		for _, method := range slices.Sorted(maps.Keys(all.Paths[path])) {
			o := all.Paths[path][method]
			request := "`" + strings.ToUpper(method) + " " + path + "`"
			role := strings.TrimSuffix(strings.TrimPrefix(o.Description, "Role: "), ".")
			body := strings.Join(slices.Sorted(maps.Keys(o.RequestBody.Content)), ", ")
			rows = append(rows, []string{request, role, body, testkit.Sentence(o.Summary)})
			for _, q := range o.Parameters {
				text := testkit.Sentence(q.Description)
				parameters = append(parameters, []string{request, "`" + q.Name + "`", text})
			}
		}
	}
	var p testkit.Page
	p.Text("Bodies and answers: [openapi.json](../openapi.json). Tables are `GET /v1/show/TABLE`, role read:\n" +
		"[show.md](show.md). How to reach the API: [cli.md](../cli.md#the-api).")
	p.Table("request | role | body | what it does", rows)
	p.Section("Parameters")
	p.Table("request | parameter | meaning", parameters)
	p.Compare(t, "api.md", "Requests of the API")
}
