// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"go.yaml.in/yaml/v3"

	"isthmus/controlplane/measure"
	"isthmus/controlplane/testkit"
)

const (
	rules = "../../deploy/prometheus/isthmus.rules.yaml"
	tests = "../../deploy/prometheus/isthmus.test.yaml"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	testkit.Must(t, err)
	return string(text)
}

// gathered are all metrics, with a sample each at least.
func gathered(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	measured := measure.New()
	measured.Request("x", 1)
	measured.OwnRequest("x", 1)
	measured.SignIn("total", 1)
	measured.Depth("x", "0", 1)
	families, err := Registry(sample, "0.1", measured).Gather()
	testkit.Must(t, err)
	return families
}

func TestReferenceMetrics(t *testing.T) {
	var rows [][]string
	for _, f := range gathered(t) {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		rows = append(rows, []string{"`" + f.GetName() + "`", strings.ToLower(f.GetType().String()),
			strings.Join(labels, " "), f.GetHelp()})
	}
	var p testkit.Page
	p.Text("How to read them: [cli.md](../cli.md#metrics).")
	p.Table("metric | type | labels | meaning", rows)
	p.Compare(t, "metrics.md", "Metrics")
}

// exported are the names of all metrics.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	families := gathered(t)
	names := map[string]bool{"up": true, "ALERTS": true}
	for _, f := range families {
		names[f.GetName()] = true
		if f.GetType().String() == "HISTOGRAM" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				names[f.GetName()+suffix] = true
			}
		}
	}
	return names
}

var metric = regexp.MustCompile(`\bisthmus_[a-z0-9_]+`)

func onlyExported(t *testing.T, names map[string]bool, where, expr string) {
	t.Helper()
	for _, name := range metric.FindAllString(expr, -1) {
		testkit.ErrorIf(t, !names[name], "%s asks for %s, which nobody exports", where, name)
	}
}

// Each alert uses existing metrics, is tested, and names what to look at.
func TestReferenceAlerts(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	testkit.Must(t, yaml.Unmarshal([]byte(read(t, rules)), &file))
	names, tested := exported(t), read(t, tests)
	var rows [][]string
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			onlyExported(t, names, r.Alert, r.Expr)
			means, look, says := strings.Cut(r.Annotations["description"], ". Look at: ")
			testkit.ErrorIf(t, !says, "%s does not say what to look at", r.Alert)
			rows = append(rows, []string{"`" + r.Alert + "`", r.Labels["severity"], means + ".", look})
			testkit.ErrorIf(t, strings.Count(tested, "alertname: "+r.Alert+"\n") < 1, "%s has no test",
				r.Alert)
			testkit.ErrorIf(t, r.Annotations["summary"] == "" || r.Labels["severity"] == "",
				"%s says nothing", r.Alert)
		}
	}
	var p testkit.Page
	p.Text("Rules of `deploy/prometheus`: [how to use them](../running.md#alerts).")
	p.Table("alert | severity | meaning | what to look at", rows)
	p.Compare(t, "alerts.md", "Alerts")
}

func TestPromtool(t *testing.T) {
	promtool, err := filepath.Abs("../../.tools/prometheus/usr/bin/promtool")
	testkit.Must(t, err)
	if _, err := os.Stat(promtool); err != nil {
		if promtool, err = exec.LookPath("promtool"); err != nil {
			t.Skip("no promtool: ./dev setup gets it")
		}
	}
	for _, args := range [][]string{{"check", "rules", filepath.Base(rules)}, {"test", "rules",
		filepath.Base(tests)}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = filepath.Dir(rules)
		out, err := cmd.CombinedOutput()
		testkit.ErrorIf(t, err != nil, "promtool %s: %v\n%s", args, err, out)
	}
	out, err := exec.Command(promtool, "check", "rules", expressions(t)).CombinedOutput()
	testkit.ErrorIf(t, err != nil, "promtool, dashboards: %v\n%s", err, out)
}

// expressions are those of all dashboards, as recording rules in a file.
func expressions(t *testing.T) string {
	t.Helper()
	type rule struct {
		Record string
		Expr   string
	}
	var list []rule
	variables := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$access", ".*")
	for _, path := range dashboardFiles(t) {
		var d dashboard
		testkit.Must(t, json.Unmarshal([]byte(read(t, path)), &d))
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				list = append(list, rule{fmt.Sprintf("panel_%d", len(list)),
					variables.Replace(target.Expr)})
			}
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": list}}})
	testkit.Must(t, err)
	path := filepath.Join(t.TempDir(), "panels.yaml")
	testkit.Must(t, os.WriteFile(path, text, 0o600))
	return path
}

func dashboardFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../deploy/grafana/*.json")
	testkit.Must(t, err)
	testkit.Equal(t, len(files), 3, "dashboards")
	return files
}

type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		ID          int
		Title, Type string
		Datasource  struct{ Type, UID string }
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ RefID, Expr string }
	}
}

// Dashboards: each panel has what Grafana needs, none overlaps another, metrics and variables exist.
func TestDashboards(t *testing.T) {
	names, uids := exported(t), map[string]bool{}
	for _, path := range dashboardFiles(t) {
		var d dashboard
		testkit.Must(t, json.Unmarshal([]byte(read(t, path)), &d))
		name := filepath.Base(path)
		testkit.ErrorIf(t, d.UID == "" || uids[d.UID] || d.Title == "" || d.SchemaVersion < 36, "%s: head",
			name)
		uids[d.UID] = true
		variables := map[string]bool{"__rate_interval": true}
		for _, v := range d.Templating.List {
			variables[v.Name] = true
			onlyExported(t, names, name, v.Query)
		}
		covered, ids := map[[2]int]string{}, map[int]bool{}
		for _, p := range d.Panels {
			where := fmt.Sprintf("%s, %s", name, p.Title)
			testkit.ErrorIf(t, ids[p.ID] || p.ID == 0 || p.Title == "" ||
				p.Datasource.UID != "${datasource}" || len(p.Targets) == 0,
				"%s: incomplete", where)
			ids[p.ID] = true
			testkit.ErrorIf(t, p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W == 0 || p.GridPos.H == 0,
				"%s: place", where)
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					testkit.FatalIf(t, covered[at] != "", "%s covers %s", where, covered[at])
					covered[at] = p.Title
				}
			}
			for _, target := range p.Targets {
				onlyExported(t, names, where, target.Expr)
				for _, v := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(target.Expr,
					-1) {
					testkit.ErrorIf(t, !variables[v[1]], "%s: no variable %s", where, v[1])
				}
				testkit.ErrorIf(t, strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")"),
					"%s: brackets", where)
			}
		}
	}
}
