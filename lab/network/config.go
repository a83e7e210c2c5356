// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"text/template"
)

// configText is the configuration of a function, as a user would write it.
// Configurations of functions, home gateways and other programs, as users would write them. frr.conf.tmpl has a
// template for each daemon.
//
//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"list": quotedList, "quote": quoted, "join": func(names []string) string { return strings.Join(names, ", ") },
}).ParseFS(templateFiles, "templates/*"))

type configInterface struct {
	Name, Role string
	MTU        int
	Addresses  []netip.Prefix
	VRF, Clone string // keys and values
}

type configInstance struct {
	Name       string
	Interfaces []string
	Endpoints  []netip.Addr
	Lookup     string
	Pools      []netip.Prefix
	Announce   string
	Sources    string
}

type configRoute struct {
	Prefix netip.Prefix
	Via    netip.Addr
}

// config writes the configuration of a function.
func (l *Lab) config(f *function) ([]byte, error) {
	if l.opt.Generation == "home" {
		return l.signInConfig(f)
	}
	data := struct {
		Title, Name, Role, Dir string
		Flood                  string // a port
		Sessions, Rules        int
		Interfaces             []configInterface
		Instances              []*configInstance
		Routes                 []configRoute
		N4, Controller         netip.Addr
		ControllerName         string
		Homes                  int
		Announces              bool
		First                  home
		Service, Peer          netip.Addr
	}{
		Title: f.title, Name: f.name, Role: f.role, Dir: filepath.Join(l.opt.Dir, f.name), N4: f.n4,
		Sessions: 2*l.opt.UEs + 64 + f.homes, Rules: 4 * (2*l.opt.UEs + 64 + f.homes),
		Controller: l.top.cores[f.core].addr, ControllerName: l.top.cores[f.core].name,
		Homes: f.homes, Announces: f.announce != "", First: homeOf(0), Service: serviceIPv4, Peer: serverIPv4,
	}
	if l.opt.Flood != 0 && f.name == gatewayName(0) {
		data.Flood = floodPort
	}
	data.Instances = f.instances()
	for _, i := range f.interfaces {
		c := configInterface{Name: i.name, Role: "core", MTU: i.mtu, Addresses: i.addresses}
		if i.access {
			c.Role = "access"
		}
		if i.clone != "" {
			c.Clone = fmt.Sprintf(", clone: {device: %s, namespace: %s}", i.name, Prefix+i.clone)
		}
		if i.vrf != "" {
			c.VRF = ", vrf: " + i.vrf
		}
		data.Interfaces = append(data.Interfaces, c)
	}
	for _, r := range f.routes {
		data.Routes = append(data.Routes, configRoute{r.prefix, r.via})
	}
	var b bytes.Buffer
	err := templates.ExecuteTemplate(&b, "function.yaml.tmpl", data)
	return b.Bytes(), err
}

// instances are the network instances of a function: one for each interface of a core port, unless some share one.
func (f *function) instances() []*configInstance {
	var list []*configInstance
	by := map[string]*configInstance{}
	pooled := false // a pool belongs to one instance
	for _, i := range f.interfaces {
		if i.access {
			continue
		}
		name := cmp.Or(i.instance, i.name)
		in := by[name]
		if in == nil {
			in = &configInstance{Name: name, Lookup: i.lookup, Sources: i.sources}
			by[name], list = in, append(list, in)
		}
		in.Interfaces = append(in.Interfaces, i.name)
		if i.endpoint {
			for _, a := range i.addresses {
				in.Endpoints = append(in.Endpoints, a.Addr())
			}
		}
		if i.lookup != "" && !pooled {
			in.Pools, in.Announce, pooled = []netip.Prefix{poolIPv4, poolIPv6}, f.announce, true
		}
	}
	return list
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
