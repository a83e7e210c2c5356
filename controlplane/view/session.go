// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"isthmus/api"
)

// Session is one session: a wireline subscriber's, or one of a mobile UE that a CP function made over PFCP.
type Session struct {
	Name            string `json:"name"`
	SEID            uint64 `json:"seid"`
	Worker          uint32 `json:"worker"`
	PDRs            uint32 `json:"pdrs"`
	Port            string `json:"port"`
	Encap           string `json:"encap"`
	STag            uint16 `json:"s_tag"`
	CTag            uint16 `json:"c_tag"`
	PPPoESession    uint16 `json:"pppoe_session"`
	MAC             string `json:"mac"`
	UEIP4           string `json:"ue_ip4"`
	UEIP6           string `json:"ue_ip6"`
	TEIDLocal       uint32 `json:"teid_local"`
	TEIDPeer        uint32 `json:"teid_peer"`
	UplinkPackets   uint64 `json:"uplink_packets"`
	UplinkBytes     uint64 `json:"uplink_bytes"`
	DownlinkPackets uint64 `json:"downlink_packets"`
	DownlinkBytes   uint64 `json:"downlink_bytes"`
	UplinkDropped   uint64 `json:"uplink_dropped"`
	DownlinkDropped uint64 `json:"downlink_dropped"`
	Buffered        uint64 `json:"buffered"`
	Association     string `json:"association"` // of the CP function; empty: the session is the configuration's
	CPSEID          uint64 `json:"cp_seid"`
	DNN             string `json:"dnn"`
	User            string `json:"user"`
}

func newSession(r *api.SessionRow) Session {
	return Session{
		Name: api.CString(r.Name[:]), SEID: r.SEID, Worker: r.Worker, PDRs: r.PDRs, Port: api.CString(r.Port[:]),
		Encap: word(encaps, uint32(r.Encap)), STag: r.STag, CTag: r.CTag, PPPoESession: r.PPPoESession, MAC: mac(r.MAC),
		UEIP4: r.UEIP4.String(), UEIP6: r.UEIP6.String(), TEIDLocal: r.TEIDLocal, TEIDPeer: r.TEIDPeer,
		UplinkPackets: r.UplinkPackets, UplinkBytes: r.UplinkBytes, DownlinkPackets: r.DownlinkPackets,
		DownlinkBytes: r.DownlinkBytes, UplinkDropped: r.UplinkDropped, DownlinkDropped: r.DownlinkDropped,
		Buffered: r.Buffered,
	}
}

// wireline tells that the session has a traffic endpoint on an access port.
func (s *Session) wireline() bool { return s.Encap != encaps[api.EncapNone] }

var (
	sessionColumns  = []column[Session]{str("SESSION", func(s *Session) string { return s.Name })}
	endpointColumns = []column[Session]{
		str("PORT", func(s *Session) string { return s.Port }),
		str("ENCAP", func(s *Session) string { return s.Encap }),
		str("TAGS", func(s *Session) string { return tags(s.STag, s.CTag, s.PPPoESession) }),
		str("MAC", func(s *Session) string { return yesNo(s.wireline(), s.MAC, "") }),
	}
	mobileColumns = []column[Session]{
		str("ASSOCIATION", func(s *Session) string { return s.Association }),
		str("SEID UP/CP", func(s *Session) string { return fmt.Sprintf("%#x/%#x", s.SEID, s.CPSEID) }),
		str("DNN", func(s *Session) string { return s.DNN }),
		str("USER", func(s *Session) string { return s.User }),
	}
	trafficColumns = []column[Session]{
		num("WORKER", func(s *Session) uint64 { return uint64(s.Worker) }),
		str("UE IPV4", func(s *Session) string { return s.UEIP4 }),
		str("UE IPV6", func(s *Session) string { return s.UEIP6 }),
		str("TEID LOCAL/PEER", func(s *Session) string { return fmt.Sprintf("%#x/%#x", s.TEIDLocal, s.TEIDPeer) }),
		num("UP PACKETS", func(s *Session) uint64 { return s.UplinkPackets }),
		num("DOWN PACKETS", func(s *Session) uint64 { return s.DownlinkPackets }),
		num("POLICED", func(s *Session) uint64 { return s.UplinkDropped + s.DownlinkDropped }),
		num("BUFFERED", func(s *Session) uint64 { return s.Buffered }),
	}
)

// sessionNoun has the columns of wireline sessions, of mobile ones, or both, by what there is to show.
func sessionNoun() *Noun {
	n := list("session", "sessions, wireline and mobile", true, api.TableSession, newSession, sessionColumns)
	n.Join = func(c Control, v any) {
		sessions, _ := v.([]Session)
		for i := range sessions {
			s := &sessions[i]
			if o, ok := c.Owner(s.SEID); ok && !s.wireline() {
				s.Association, s.CPSEID, s.DNN, s.User = o.Association, o.CPSEID, o.DNN, o.User
			}
		}
	}
	n.Print = func(w io.Writer, data []byte) error {
		var all []Session
		if err := json.Unmarshal(data, &all); err != nil {
			return fmt.Errorf("session: %w", err)
		}
		columns := slices.Clone(sessionColumns)
		if len(all) == 0 || slices.ContainsFunc(all, func(s Session) bool { return s.wireline() }) {
			columns = append(columns, endpointColumns...)
		}
		if slices.ContainsFunc(all, func(s Session) bool { return !s.wireline() }) {
			columns = append(columns, mobileColumns...)
		}
		return write(w, append(columns, trafficColumns...), all)
	}
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
