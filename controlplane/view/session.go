// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"isthmus/api"
)

// Session is one session: a wireline subscriber's, or one of a mobile UE that a CP function made over PFCP.
type Session struct {
	Name            string `json:"name"`
	SEID            uint64 `json:"seid"` // ours
	Worker          uint32 `json:"worker"`
	PDRs            uint32 `json:"pdrs"` // how many
	Port            string `json:"port"`
	Encap           string `json:"encap" word:"encap"` // none, qinq, qinq-pppoe
	STag            uint16 `json:"s_tag"`
	CTag            uint16 `json:"c_tag"`
	PPPoESession    uint16 `json:"pppoe_session"` // 0: none
	MAC             string `json:"mac"`
	UEIP4           string `json:"ue_ip4"`
	UEIP6           string `json:"ue_ip6"`
	TEIDLocal       uint32 `json:"teid_local"`
	TEIDPeer        uint32 `json:"teid_peer"` // 0: none
	UplinkPackets   uint64 `json:"uplink_packets"`
	UplinkBytes     uint64 `json:"uplink_bytes"`
	DownlinkPackets uint64 `json:"downlink_packets"`
	DownlinkBytes   uint64 `json:"downlink_bytes"`
	UplinkDropped   uint64 `json:"uplink_dropped"`    // packets, the sum of its rules
	DownlinkDropped uint64 `json:"downlink_dropped"`  // packets, the sum of its rules
	Buffered        uint64 `json:"buffered"`          // packets that wait for the UE
	SchedulerPipe   string `json:"scheduler_pipe"`    // as show scheduler takes it; empty: none
	PipeProfile     string `json:"scheduler_profile"` // of the pipe
	Association     string `json:"association"`       // node id of the CP function; empty: none
	CPSEID          uint64 `json:"cp_seid"`           // of the CP function
	DNN             string `json:"dnn"`
	User            string `json:"user" private:"name"` // IMSI, MSISDN or NAI
	SEIDHex         string `json:"seid_hex"`            // as text, for programs that read numbers to 2^53
	CPSEIDHex       string `json:"cp_seid_hex"`         // as text
}

func (s *Session) finish(r *api.SessionRow) {
	s.SEIDHex = hex(s.SEID)
	if s.PipeProfile != "" {
		s.SchedulerPipe = fmt.Sprintf("%s/%d/%d", s.Port, r.Subport, r.Pipe)
	}
}

func hex(v uint64) string { return "0x" + strconv.FormatUint(v, 16) }

// wireline: the session has a traffic endpoint on an access port.
func (s *Session) wireline() bool { return s.Encap != words["encap"][api.EncapNone] }

var (
	sessionColumns  = columns[Session]("SESSION=Name")
	endpointColumns = columns[Session]("PORT, ENCAP, TAGS, MAC",
		str("TAGS", func(s *Session) string { return tags(s.STag, s.CTag, s.PPPoESession) }),
		str("MAC", func(s *Session) string { return yesNo(s.wireline(), s.MAC, "") }))
	mobileColumns = columns[Session]("ASSOCIATION, SEID UP/CP, DNN, USER",
		str("SEID UP/CP", func(s *Session) string { return fmt.Sprintf("%#x/%#x", s.SEID, s.CPSEID) }))
	trafficColumns = columns[Session](`WORKER, UE IPV4=UEIP4, UE IPV6=UEIP6, TEID LOCAL/PEER,
		UP PACKETS=UplinkPackets, DOWN PACKETS=DownlinkPackets, DROPPED, BUFFERED`,
		str("TEID LOCAL/PEER", func(s *Session) string {
			return yesNo(s.TEIDLocal|s.TEIDPeer != 0, fmt.Sprintf("%#x/%#x", s.TEIDLocal, s.TEIDPeer), "")
		}),
		num("DROPPED", func(s *Session) uint64 { return s.UplinkDropped + s.DownlinkDropped }))
	pipeColumns = columns[Session]("PIPE=SchedulerPipe, PIPE PROFILE")
)

var sessionTable = newSessionTable()

// newSessionTable has the columns of wireline sessions, of mobile ones, or both, by what there is to show.
func newSessionTable() *Table {
	n := list("session", "sessions, wireline and mobile", true, api.TableSession, sessionColumns,
		(*Session).finish).
		rates("name", "ue_ip4 dnn user", `uplink_packets uplink_bytes downlink_packets downlink_bytes
			uplink_dropped downlink_dropped`)
	n.Titles = titlesOf(slices.Concat(sessionColumns, endpointColumns, mobileColumns, trafficColumns, pipeColumns))
	n.Join = func(c Control, v any) {
		sessions, _ := v.([]Session)
		for i := range sessions {
			s := &sessions[i]
			if o, ok := c.Owner(s.SEID); ok && !s.wireline() {
				s.Association, s.CPSEID, s.DNN, s.User = o.Association, o.CPSEID, o.DNN, o.User
				s.CPSEIDHex = hex(o.CPSEID)
			}
		}
	}
	n.Print = printer("session", func(w io.Writer, all []Session) error {
		columns := slices.Clone(sessionColumns)
		if len(all) == 0 || slices.ContainsFunc(all, func(s Session) bool { return s.wireline() }) {
			columns = append(columns, endpointColumns...)
		}
		if slices.ContainsFunc(all, func(s Session) bool { return !s.wireline() }) {
			columns = append(columns, mobileColumns...)
		}
		columns = append(columns, trafficColumns...)
		if slices.ContainsFunc(all, func(s Session) bool { return s.SchedulerPipe != "" }) {
			columns = append(columns, pipeColumns...)
		}
		return write(w, columns, all)
	})
	return n
}

// tags prints "S.C" and the PPPoE session when there is one: "100.7 pppoe 12".
func tags(s, c, pppoe uint16) string {
	if s == 0 && c == 0 {
		return ""
	}
	t := fmt.Sprintf("%d.%d", s, c)
	if pppoe != 0 {
		t += fmt.Sprintf(" pppoe %d", pppoe)
	}
	return t
}
