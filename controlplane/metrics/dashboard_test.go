// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"isthmus/controlplane/testkit"
)

// The dashboards have no field that Grafana's own types do not, and none of another type or without its bounds.
func TestDashboardsByGrafanasTypes(t *testing.T) {
	runtime := cog.NewRuntime()
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())
	runtime.RegisterPanelcfgVariant(heatmap.VariantConfig())
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterPanelcfgVariant(table.VariantConfig())
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	for _, path := range dashboardFiles(t) {
		text := read(t, path)
		testkit.Equal(t, faults(text), "", "%s", filepath.Base(path))
		for good, bad := range map[string]string{
			`"gridPos": {"x"`:              `"gridPos": {"z"`,
			`"custom": {"fillOpacity": 10`: `"custom": {"fillOpacity": "x"`,
			`"expr": "`:                    `"exp": "`,
		} {
			broken := strings.Replace(text, good, bad, 1)
			testkit.ErrorIf(t, faults(broken) == "", "%s: %s is taken", filepath.Base(path), bad)
		}
	}
}

// faults are those of a dashboard in words. An error without words is none.
func faults(text string) string {
	var d grafana.Dashboard //lint:ignore SA1019 the files are of this schema, which every Grafana reads
	if err := d.UnmarshalJSONStrict([]byte(text)); err != nil && err.Error() != "" {
		return err.Error()
	}
	if err := d.Validate(); err != nil && err.Error() != "" {
		return err.Error()
	}
	return ""
}
