// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"isthmus/api"
	"isthmus/controlplane/n4"
)

var (
	sources = map[uint32]string{
		api.SourceFromAccess: "access", api.SourceFromCore: "core", api.SourceFromSGILAN: "sgi-lan", api.SourceFromCP: "cp",
	}
	lookups = map[uint32]string{
		api.LookupNone: "none", api.LookupDestination: "destination", api.LookupSource: "source",
	}
	events = map[uint32]string{
		api.EventTypeUsage: "usage", api.EventTypeDownlinkData: "downlink-data", api.EventTypeErrorIndication: "error-indication",
		api.EventTypePathDown: "path-down", api.EventTypePathUp: "path-up", api.EventTypeInactive: "inactive",
		api.EventTypeBufferFull: "buffer-full", api.EventTypeMissed: "missed",
	}
)

// farAction spells the bits of a FAR's action: "buffer notify".
func farAction(bits uint32) string {
	var words []string
	for _, a := range []struct {
		bit  uint32
		word string
	}{{api.FARDrop, "drop"}, {api.FARForward, "forward"}, {api.FARBuffer, "buffer"}, {api.FARNotify, "notify"}, {api.FARDuplicate, "duplicate"}} {
		if bits&a.bit != 0 {
			words = append(words, a.word)
		}
	}
	return strings.Join(words, " ")
}

// Rule is one PDR with its FAR.
type Rule struct {
	Session     string `json:"session"`
	PDR         uint32 `json:"pdr"`
	FAR         uint32 `json:"far"`
	Precedence  uint32 `json:"precedence"`
	Source      string `json:"source"`
	Destination string `json:"destination"`
	Action      string `json:"action"`
	TEIDLocal   uint32 `json:"teid_local"`
	TEIDPeer    uint32 `json:"teid_peer"`
	Local       string `json:"local"`
	Peer        string `json:"peer"`
	Packets     uint64 `json:"packets"`
	Bytes       uint64 `json:"bytes"`
	Dropped     uint64 `json:"dropped"`
	Buffered    uint64 `json:"buffered"`
}

func newRule(r *api.RuleRow) Rule {
	return Rule{
		Session: api.CString(r.Session[:]), PDR: r.PDR, FAR: r.FAR, Precedence: r.Precedence, Source: word(sources, r.Source),
		Destination: word(sources, r.Destination), Action: farAction(r.Action), TEIDLocal: r.TEIDLocal, TEIDPeer: r.TEIDPeer,
		Local: r.Local.String(), Peer: r.Peer.String(), Packets: r.Packets, Bytes: r.Bytes, Dropped: r.Dropped, Buffered: r.Buffered,
	}
}

// tunnel prints one end: "10.0.0.1 0x10".
func tunnel(address string, teid uint32) string {
	if teid == 0 {
		return address
	}
	return strings.TrimSpace(fmt.Sprintf("%s %#x", address, teid))
}

var ruleColumns = []column[Rule]{
	str("SESSION", func(r *Rule) string { return r.Session }),
	num("PDR", func(r *Rule) uint64 { return uint64(r.PDR) }),
	num("PRECEDENCE", func(r *Rule) uint64 { return uint64(r.Precedence) }),
	str("FROM", func(r *Rule) string { return r.Source }),
	str("LOCAL", func(r *Rule) string { return tunnel(r.Local, r.TEIDLocal) }),
	num("FAR", func(r *Rule) uint64 { return uint64(r.FAR) }),
	str("ACTION", func(r *Rule) string { return r.Action }),
	str("TO", func(r *Rule) string { return r.Destination }),
	str("PEER", func(r *Rule) string { return tunnel(r.Peer, r.TEIDPeer) }),
	num("PACKETS", func(r *Rule) uint64 { return r.Packets }),
	num("BYTES", func(r *Rule) uint64 { return r.Bytes }),
	num("DROPPED", func(r *Rule) uint64 { return r.Dropped }),
	num("BUFFERED", func(r *Rule) uint64 { return r.Buffered }),
}

// Volume is bytes or packets of a URR.
type Volume struct {
	Total    uint64 `json:"total"`
	Uplink   uint64 `json:"uplink"`
	Downlink uint64 `json:"downlink"`
}

func newVolume(v [3]uint64) Volume { return Volume{v[0], v[1], v[2]} } // API_TOTAL, API_UPLINK, API_DOWNLINK

// Quota is what is left; null where there is no quota.
type Quota struct {
	Total    *uint64 `json:"total"`
	Uplink   *uint64 `json:"uplink"`
	Downlink *uint64 `json:"downlink"`
}

func newQuota(v [3]uint64) Quota {
	left := func(i int) *uint64 {
		if v[i] == 1<<64-1 {
			return nil
		}
		return &v[i]
	}
	return Quota{left(0), left(1), left(2)}
}

// String is the least that is left of the three.
func (q Quota) String() string {
	var least *uint64
	for _, v := range []*uint64{q.Total, q.Uplink, q.Downlink} {
		if v != nil && (least == nil || *v < *least) {
			least = v
		}
	}
	if least == nil {
		return ""
	}
	return strconv.FormatUint(*least, 10)
}

// URR is one usage report rule: what it measured since its last report.
type URR struct {
	Session   string `json:"session"`
	URR       uint32 `json:"urr"`
	Sequence  uint32 `json:"sequence"` // reports so far
	Bytes     Volume `json:"bytes"`
	Packets   Volume `json:"packets"`
	QuotaLeft Quota  `json:"quota_left"`
	Duration  uint32 `json:"duration"`
	Exhausted bool   `json:"exhausted"`
}

func newURR(r *api.URRRow) URR {
	return URR{
		Session: api.CString(r.Session[:]), URR: r.URR, Sequence: r.Sequence, Bytes: newVolume(r.Bytes),
		Packets: newVolume(r.Packets), QuotaLeft: newQuota(r.QuotaLeft), Duration: r.Duration, Exhausted: r.Exhausted != 0,
	}
}

var urrColumns = []column[URR]{
	str("SESSION", func(u *URR) string { return u.Session }),
	num("URR", func(u *URR) uint64 { return uint64(u.URR) }),
	num("REPORTS", func(u *URR) uint64 { return uint64(u.Sequence) }),
	num("UP BYTES", func(u *URR) uint64 { return u.Bytes.Uplink }),
	num("DOWN BYTES", func(u *URR) uint64 { return u.Bytes.Downlink }),
	num("UP PACKETS", func(u *URR) uint64 { return u.Packets.Uplink }),
	num("DOWN PACKETS", func(u *URR) uint64 { return u.Packets.Downlink }),
	num("SECONDS", func(u *URR) uint64 { return uint64(u.Duration) }),
	cellNum("QUOTA LEFT", func(u *URR) string { return u.QuotaLeft.String() }),
	str("EXHAUSTED", func(u *URR) string { return yesNo(u.Exhausted, "yes", "no") }),
}

// Instance is one network instance.
type Instance struct {
	Name        string `json:"name"`
	Lookup      string `json:"lookup"`
	Tunnels     uint32 `json:"tunnels"` // F-TEIDs of sessions on its endpoints
	UEAddresses uint32 `json:"ue_addresses"`
	UnknownUE   uint64 `json:"unknown_ue"`   // packets of its pools that no session has
	UnknownTEID uint64 `json:"unknown_teid"` // G-PDUs to its endpoints that no session has
}

func newInstance(r *api.InstanceRow) Instance {
	return Instance{api.CString(r.Name[:]), word(lookups, r.Lookup), r.Tunnels, r.UEAddresses, r.UnknownUE, r.UnknownTEID}
}

var instanceColumns = []column[Instance]{
	str("INSTANCE", func(i *Instance) string { return i.Name }),
	str("LOOKUP", func(i *Instance) string { return i.Lookup }),
	num("TUNNELS", func(i *Instance) uint64 { return uint64(i.Tunnels) }),
	num("UE ADDRESSES", func(i *Instance) uint64 { return uint64(i.UEAddresses) }),
	num("UNKNOWN UE", func(i *Instance) uint64 { return i.UnknownUE }),
	num("UNKNOWN TEID", func(i *Instance) uint64 { return i.UnknownTEID }),
}

// Event is one kind of report to the control plane.
type Event struct {
	Name         string `json:"name"`
	Subscribers  uint32 `json:"subscribers"`
	Raised       uint64 `json:"raised"`
	Acknowledged uint64 `json:"acknowledged"`
	Suppressed   uint64 `json:"suppressed"`
	Waiting      uint64 `json:"waiting"`
}

// EventName is the word for a type of event.
func EventName(t uint32) string { return word(events, t) }

func newEvent(r *api.EventRow) Event {
	return Event{EventName(r.Type), r.Subscribers, r.Raised, r.Acknowledged, r.Suppressed, r.Waiting}
}

var eventColumns = []column[Event]{
	str("EVENT", func(e *Event) string { return e.Name }),
	num("RAISED", func(e *Event) uint64 { return e.Raised }),
	num("ACKNOWLEDGED", func(e *Event) uint64 { return e.Acknowledged }),
	num("WAITING", func(e *Event) uint64 { return e.Waiting }),
	num("SUPPRESSED", func(e *Event) uint64 { return e.Suppressed }),
	num("SUBSCRIBERS", func(e *Event) uint64 { return uint64(e.Subscribers) }),
}

// Control is what the control plane knows beside the data plane's tables. Calls come from any goroutine.
type Control interface {
	Associations() []Association
	N4() *n4.Snapshot
	// Owner tells on whose behalf a session stands; false: on the configuration's.
	Owner(seid uint64) (Owner, bool)
}

// Owner is the control plane's part of a mobile session.
type Owner struct {
	Association string // node id
	CPSEID      uint64
	DNN         string // APN or DNN
	User        string // IMSI, MSISDN or NAI, when the CP function told it
}

// Association is one PFCP association.
type Association struct {
	ID        string    `json:"id"` // node id
	Set       string    `json:"set"`
	Address   string    `json:"address"`
	State     string    `json:"state"` // up, failed, releasing
	Since     time.Time `json:"since"`
	Recovery  time.Time `json:"recovery"` // recovery time stamp of the peer
	Sessions  int       `json:"sessions"`
	Features  string    `json:"features"`
	Heartbeat int64     `json:"heartbeat_us"` // round trip of the last one, microseconds; 0: none yet
}

var associationColumns = []column[Association]{
	str("ASSOCIATION", func(a *Association) string { return a.ID }),
	str("SET", func(a *Association) string { return a.Set }),
	str("ADDRESS", func(a *Association) string { return a.Address }),
	str("STATE", func(a *Association) string { return a.State }),
	str("SINCE", func(a *Association) string { return stamp(a.Since) }),
	str("RECOVERY", func(a *Association) string { return stamp(a.Recovery) }),
	num("SESSIONS", func(a *Association) uint64 { return uint64(max(a.Sessions, 0)) }),
	num("HEARTBEAT µS", func(a *Association) uint64 { return uint64(max(a.Heartbeat, 0)) }),
	str("FEATURES", func(a *Association) string { return a.Features }),
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// associationNoun asks the control plane alone.
var associationNoun = &Noun{
	Name: "association", Short: "PFCP associations with CP functions", Key: true,
	Own: func(c Control, key string, limit uint32) any {
		all := []Association{}
		if c != nil {
			all = append(all, c.Associations()...)
		}
		if key != "" {
			all = slices.DeleteFunc(all, func(a Association) bool { return a.ID != key })
		}
		if limit > 0 && len(all) > int(limit) {
			all = all[:limit]
		}
		return all
	},
	Print: func(w io.Writer, data []byte) error {
		var values []Association
		if err := json.Unmarshal(data, &values); err != nil {
			return fmt.Errorf("association: %w", err)
		}
		return write(w, associationColumns, values)
	},
}
