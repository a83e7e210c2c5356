// SPDX-License-Identifier: Apache-2.0

// Command dashboards checks that dashboards have no field that Grafana's own types do not, and none of another type or
// without its bounds. usage: dashboards FILE...
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// The parts of each dashboard with a bad replacement that must be refused: otherwise the types check nothing.
var broken = map[string]string{
	`"gridPos": {"x"`:              `"gridPos": {"z"`,
	`"custom": {"fillOpacity": 10`: `"custom": {"fillOpacity": "x"`,
	`"expr": "`:                    `"exp": "`,
}

func main() {
	runtime := cog.NewRuntime()
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())
	runtime.RegisterPanelcfgVariant(heatmap.VariantConfig())
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterPanelcfgVariant(table.VariantConfig())
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	status := 0
	for _, path := range os.Args[1:] {
		for _, fault := range look(path) {
			fmt.Printf("%s: %s\n", path, fault)
			status = 1
		}
	}
	os.Exit(status)
}

func look(path string) (list []string) {
	text, err := os.ReadFile(path)
	if err != nil {
		return []string{err.Error()}
	}
	if said := faults(string(text)); said != "" {
		list = append(list, said)
	}
	for good, bad := range broken {
		if faults(strings.Replace(string(text), good, bad, 1)) == "" {
			list = append(list, bad+" is taken")
		}
	}
	return list
}

// faults are a dashboard's, as text. An error without a text is none.
func faults(text string) string {
	var d dashboard.Dashboard // of this schema, which every Grafana reads
	if err := d.UnmarshalJSONStrict([]byte(text)); err != nil && err.Error() != "" {
		return err.Error()
	}
	if err := d.Validate(); err != nil && err.Error() != "" {
		return err.Error()
	}
	return ""
}
