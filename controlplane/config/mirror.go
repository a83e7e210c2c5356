// SPDX-License-Identifier: Apache-2.0

package config

// Mirror copies packets of some subscribers or sessions to somewhere else.
type Mirror struct {
	At        `yaml:""`
	Name      Name         `yaml:"name" req:"true" doc:"The mirror's name."`
	To        MirrorTarget `yaml:"to" req:"true" doc:"Where copies go: port, path or erspan."`
	Direction string       `yaml:"direction" default:"both" enum:"both|uplink|downlink" doc:"Packets from the subscriber, to it, or both."`
	Snap      uint16       `yaml:"snap" doc:"Bytes of a copy at most, 64 or more; 0: all."`
	Sample    uint32       `yaml:"sample" default:"1" min:"1" doc:"One packet in so many is copied, of each worker."`
	Rate      uint32       `yaml:"rate" doc:"Most copies per second, of all workers; 0: no limit."`
	Match     MirrorMatch  `yaml:"match" doc:"Whose packets, beside those of subscribers that name the mirror, and which of them."`
}

// MirrorTarget is one of a port, a GTP-U tunnel, an ERSPAN collector.
type MirrorTarget struct {
	At      `yaml:""`
	Port    Name    `yaml:"port" doc:"Port by which frames leave as they came."`
	Path    Name    `yaml:"path" doc:"GTP-U path: IP packets leave in G-PDUs."`
	TEID    uint32  `yaml:"teid" doc:"TEID of the G-PDUs."`
	ERSPAN  Address `yaml:"erspan" doc:"Collector: frames as they came leave in ERSPAN type II over GRE, from our address on the way there."`
	Session uint16  `yaml:"session" max:"1023" doc:"ERSPAN session id."`
	DSCP    uint8   `yaml:"dscp" max:"63" doc:"DSCP of the outer header, with path or erspan."`
}

// MirrorMatch says whose packets (ue, instance), and which (the others).
type MirrorMatch struct {
	At         `yaml:""`
	UE         Prefix    `yaml:"ue" doc:"Sessions whose UE address lies in it."`
	Instance   Name      `yaml:"instance" doc:"Sessions that send to this network instance, or have their UE address there."`
	Remote     Prefix    `yaml:"remote" doc:"Packets to or from these hosts; absent: any."`
	RemotePort PortRange `yaml:"remote_port" doc:"Port or range of theirs."`
	UEPort     PortRange `yaml:"ue_port" doc:"Port or range of the UE's."`
	Protocol   Protocol  `yaml:"protocol" doc:"IP protocol, by name or number."`
}

func (m *Mirror) check(k *checker) {
	k.notDynamic(m.At, m.Name)
	m.To.check(k)
	if m.Snap != 0 && m.Snap < 64 {
		k.fail(m.At, "snap", "%d is less than 64", m.Snap)
	}
	x := &m.Match
	k.tuple(x.At, Prefix{}, x.Remote, x.RemotePort.Any() && x.UEPort.Any(), x.Protocol)
	k.network(x.At, "ue", x.UE)
	refer(k, x.At, "instance", "network instance", x.Instance, k.instances)
}

func (t *MirrorTarget) check(k *checker) {
	given := 0
	for _, there := range []bool{t.Port != "", t.Path != "", t.ERSPAN.IsValid()} {
		if there {
			given++
		}
	}
	if given != 1 {
		k.fail(t.At, "", "needs one of port, path and erspan")
		return
	}
	refer(k, t.At, "port", "port", t.Port, k.ports)
	refer(k, t.At, "path", "path", t.Path, k.paths)
	if (t.Path != "") != (t.TEID != 0) {
		k.fail(t.At, "teid", "goes with path: give both or none")
	}
	if t.Port != "" && t.Has("dscp") {
		k.fail(t.At, "dscp", "copies that leave by a port have no outer header")
	}
	a := t.ERSPAN.Addr
	if !a.IsValid() {
		if t.Has("session") {
			k.fail(t.At, "session", "belongs to erspan")
		}
		return
	}
	if a.IsMulticast() || a.IsUnspecified() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		k.fail(t.At, "erspan", "%s is no host's address", a)
	}
	if line, ours := k.addresses[vrfAddress{"", a}]; ours {
		k.fail(t.At, "erspan", "%s is an address of ours, line %d", a, line)
	}
}
