// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"isthmus/controlplane/config"
	"isthmus/controlplane/n4"
)

// smfFiles are the lines of an SMF's file that follow from ours, by core. Names are quoted: an APN may be any text.
var smfFiles = map[string]*template.Template{
	"open5gs": smfTemplate(`# smf.yaml
smf:
  pfcp:
    server:
      - address: {{.SMFID}}{{if ne .SMFID .SMF}} # a name of {{.SMF}}: the Node ID{{end}}
    client:
      upf:
        - address: {{.UPF}}
          dnn: {{quoted .DNNs}}
  session:{{range $dnn, $pools := .Pools}}{{range $pools}}
    - subnet: {{.}}
      gateway: {{.Addr.Next}}
      dnn: {{printf "%q" $dnn}}{{end}}{{end}}{{if .MTU}}
  mtu: {{.MTU}} # of UEs: it leaves N3 whole in a tunnel{{end}}
`),
	"free5gc": smfTemplate(`# smfcfg.yaml
configuration:
  pfcp:
    nodeID: {{.SMFID}}
    listenAddr: {{.SMF}}
    externalAddr: {{.SMF}}
  userplaneInformation:
    upNodes:
      gNB1:
        type: AN
      UPF:
        type: UPF
        nodeID: {{.NodeID}}
        addr: {{.UPF}}
        sNssaiUpfInfos:
          - sNssai: {sst: 1, sd: "010203"} # the UE's slice
            dnnUpfInfoList:{{range $dnn, $pools := .Pools}}
              - dnn: {{printf "%q" $dnn}}
                pools:{{range $pools}}{{if .Addr.Is4}}
                  - cidr: {{.}}{{end}}{{end}}{{end}}
        interfaces:{{range $type, $endpoints := .Interfaces}}
          - interfaceType: {{$type}}
            endpoints: {{quoted $endpoints}}
            networkInstances: {{quoted $.DNNs}}{{end}}
    links:
      - {A: gNB1, B: UPF}{{if .MTU}}
# The MTU of UEs is 1400 in its code, without a key; {{.MTU}} would leave N3 whole in a tunnel.{{end}}
`),
}

func smfTemplate(text string) *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{"quoted": quoted}).Parse(text))
}

func quoted(list []string) string {
	var all []string
	for _, s := range list {
		all = append(all, strconv.Quote(s))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// smfLines are what a template prints.
type smfLines struct {
	NodeID, UPF string
	SMF, SMFID  string // address, and the Node ID that its entry takes; Open5GS sends the address as its file has it
	DNNs        []string
	Pools       map[string][]netip.Prefix // by DNN: an instance's pools are those of its own name
	Interfaces  map[string][]string       // addresses of our F-TEIDs, by N3, N9
	MTU         uint32                    // of UEs; 0: not known
}

// Cores are those for which WriteSMF has lines.
func Cores() []string { return slices.Sorted(maps.Keys(smfFiles)) }

// WriteSMF prints the lines of a core's SMF's file that follow from the running configuration. mtus are those of the
// ports with an address.
func WriteSMF(w io.Writer, core string, s *n4.Snapshot, instances []Instance, mtus map[netip.Addr]uint32) error {
	file := smfFiles[core]
	if file == nil {
		return fmt.Errorf("%q is none of %s", core, strings.Join(Cores(), ", "))
	}
	lines := smfLines{NodeID: s.NodeID, Pools: map[string][]netip.Prefix{},
		Interfaces: map[string][]string{}}
	var err error
	if lines.UPF, err = n4Address("pfcp.listen", s.Listen); err != nil {
		return err
	}
	if lines.SMF, err = n4Address("pfcp.peers", s.Peers); err != nil {
		return err
	}
	lines.SMFID = lines.SMF
	if len(s.PeerIDs) > 0 && s.PeerIDs[0] != "" {
		lines.SMFID = s.PeerIDs[0]
	}
	for i := range instances {
		if err := lines.add(&instances[i]); err != nil {
			return err
		}
	}
	lines.mtu(mtus)
	return file.Execute(w, lines)
}

// mtu is what all endpoints have room for.
func (l *smfLines) mtu(of map[netip.Addr]uint32) {
	for _, endpoints := range l.Interfaces {
		for _, text := range endpoints {
			a, err := netip.ParseAddr(text)
			if port := of[a]; err == nil && port > 0 {
				l.MTU = min(cmp.Or(l.MTU, math.MaxUint32), config.InTunnel(port, a))
			}
		}
	}
}

// n4Address is the first of them. Neither core's file has a port.
func n4Address(key string, list []string) (string, error) {
	if len(list) == 0 {
		return "", fmt.Errorf("%s of the configuration is empty: give an address", key)
	}
	a, err := netip.ParseAddrPort(list[0])
	if err == nil && a.Port() != config.PFCPPort {
		err = fmt.Errorf("%s: %s has another port than %d, which SMFs send to", key, a, config.PFCPPort)
	}
	return a.Addr().String(), err
}

func (l *smfLines) add(in *Instance) error {
	if len(in.Endpoints) > 0 {
		side := "N3"
		if slices.Contains(in.Sources, "core") {
			side = "N9"
		}
		l.Interfaces[side] = append(l.Interfaces[side], in.Endpoints...)
	}
	if in.Lookup != "destination" {
		return nil
	}
	l.DNNs = append(l.DNNs, in.Name)
	l.DNNs = append(l.DNNs, slices.DeleteFunc(slices.Clone(in.Names), func(n string) bool { return n == "*" })...)
	for _, text := range in.Pools {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return err
		}
		l.Pools[in.Name] = append(l.Pools[in.Name], p)
	}
	return nil
}
