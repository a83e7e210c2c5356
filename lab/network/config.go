// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"text/template"
)

// configText is the configuration of a function, as a user would write it.
var configText = template.Must(template.New("").Funcs(template.FuncMap{"list": quotedList, "quote": quoted}).Parse(
	`# {{.Title}} of the lab, written by ` + "`isthmus lab`" + `; read it, change a copy.
engine:
  huge_pages: "off"
  packet_buffers: 16384
  idle_sleep: true
  limits: {sessions: {{.Sessions}}, rules: {{.Rules}}, flows: 65536}

control:
  dp_socket: {{.Dir}}/dp.sock
  socket: {{.Dir}}/isthmus.sock
  metrics: ""

ports:
{{- range .Interfaces}}
  - {name: {{.Name}}, driver: net_af_packet, device: {{.Name}}, role: core, mtu: {{.MTU}}}
{{- end}}

interfaces:
{{- range .Interfaces}}
  - {name: {{.Name}}, port: {{.Name}}, addresses: {{list .Addresses}}}
{{- end}}
{{with .Routes}}
routes:
{{- range .}}
  - {prefix: {{quote .Prefix}}, via: {{quote .Via}}}
{{- end}}
{{end}}
instances:
{{- range .Interfaces}}
  - name: {{.Name}}
    interfaces: [{{.Name}}]
{{- if .Endpoint}}
    endpoints: {{list .Endpoints}}
{{- end}}
{{- if .Lookup}}
    lookup: {{.Lookup}}
{{- if .Pools}}
    pools: {{list .Pools}}
{{- end}}
{{- end}}
{{- if .Sources}}
    sources: [{{.Sources}}]
{{- end}}
{{- end}}

pfcp:
  listen: [{{.N4}}]
  node_id: {{.Name}}.lab
  roles: [{{.Role}}]
  peers: [{address: {{.Controller}}, node_id: {{.ControllerName}}.lab}]
  heartbeat: {interval: 10, retries: 3, timeout: 1}
`))

type configInterface struct {
	Name      string
	MTU       int
	Addresses []netip.Prefix
	Endpoints []netip.Addr
	Endpoint  bool
	Lookup    string
	Pools     []netip.Prefix
	Sources   string
}

type configRoute struct {
	Prefix netip.Prefix
	Via    netip.Addr
}

// config writes the configuration of a function.
func (l *Lab) config(f *function) ([]byte, error) {
	data := struct {
		Title, Name, Role, Dir string
		Sessions, Rules        int
		Interfaces             []configInterface
		Routes                 []configRoute
		N4, Controller         netip.Addr
		ControllerName         string
	}{
		Title: f.title, Name: f.name, Role: f.role, Dir: filepath.Join(l.opt.Dir, f.name), N4: f.n4,
		Sessions: 2*l.opt.UEs + 64, Rules: 4 * (2*l.opt.UEs + 64),
		Controller: l.top.cores[f.core].addr, ControllerName: l.top.cores[f.core].name,
	}
	pooled := false // a pool belongs to one instance
	for _, i := range f.interfaces {
		c := configInterface{
			Name: i.name, MTU: i.mtu, Addresses: i.addresses, Endpoint: i.endpoint, Lookup: i.lookup, Sources: i.sources,
		}
		if i.endpoint {
			for _, a := range i.addresses {
				c.Endpoints = append(c.Endpoints, a.Addr())
			}
		}
		if i.lookup != "" && !pooled {
			c.Pools, pooled = []netip.Prefix{poolIPv4, poolIPv6}, true
		}
		data.Interfaces = append(data.Interfaces, c)
	}
	for _, r := range f.routes {
		data.Routes = append(data.Routes, configRoute{r.prefix, r.via})
	}
	var b bytes.Buffer
	err := configText.Execute(&b, data)
	return b.Bytes(), err
}

// quoted puts what YAML would take apart between quotes.
func quoted(v fmt.Stringer) string {
	if s := v.String(); !strings.Contains(s, ":") {
		return s
	}
	return `"` + v.String() + `"`
}

func quotedList(v any) string {
	var list []string
	switch v := v.(type) {
	case []netip.Prefix:
		for _, p := range v {
			list = append(list, quoted(p))
		}
	case []netip.Addr:
		for _, a := range v {
			list = append(list, quoted(a))
		}
	}
	return "[" + strings.Join(list, ", ") + "]"
}
