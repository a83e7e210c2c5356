// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"io"
	"reflect"
	"time"
)

// Subscriber is one of an access line: of the configuration, signed in, or one whose attempts alone are known.
type Subscriber struct {
	User            string    `json:"user" private:"name"` // of the configuration: its name
	State           string    `json:"state"`               // static, starting, up, captive, ending, away
	Kind            string    `json:"kind"`                // static, pppoe, dhcp, dhcpv6, packet
	Line            string    `json:"line"`                // PORT:STAG.CTAG
	MAC             string    `json:"mac"`
	PPPoESession    uint16    `json:"pppoe_session"`
	Circuit         string    `json:"circuit" private:"name"`
	Remote          string    `json:"remote" private:"name"`
	IPv4            string    `json:"ipv4"`
	IPv6            string    `json:"ipv6"`
	Delegated       string    `json:"delegated"`
	Profile         string    `json:"profile"`
	Instance        string    `json:"instance"`
	UplinkList      string    `json:"uplink_list"` // access lists
	DownlinkList    string    `json:"downlink_list"`
	Scheduler       string    `json:"scheduler_profile"` // of its pipe
	UpRate          uint64    `json:"up_kbit"`           // of its own; 0: the profile's
	DownRate        uint64    `json:"down_kbit"`
	Since           time.Time `json:"since"`
	UplinkPackets   uint64    `json:"uplink_packets"`
	UplinkBytes     uint64    `json:"uplink_bytes"`
	DownlinkPackets uint64    `json:"downlink_packets"`
	DownlinkBytes   uint64    `json:"downlink_bytes"`
	Session         string    `json:"session"` // Acct-Session-Id
	Object          string    `json:"object"`  // of the data plane: show session
	Attempts        []Attempt `json:"attempts,omitempty"`
}

// Attempt is one to sign in, or several alike.
type Attempt struct {
	User  string    `json:"user" private:"name"`
	Kind  string    `json:"kind"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Count int       `json:"count"`
	Why   string    `json:"why" private:"text"` // empty: it was let in, with all that was said
}

// AddressPool has addresses of subscribers who sign in.
type AddressPool struct {
	Name     string `json:"name"`
	Instance string `json:"instance"`
	Network  string `json:"network"`
	Length   int    `json:"length"`
	Size     uint64 `json:"size"`
	Used     uint64 `json:"used"`
	Reserved uint64 `json:"reserved"`
	Held     uint64 `json:"held"` // given back, and nobody else's yet
	Declined uint64 `json:"declined"`
	Given    uint64 `json:"given"`
	Again    uint64 `json:"again"` // of given: to who had it before
	Refused  uint64 `json:"refused"`
}

// RADIUSServer is one of authentication or accounting.
type RADIUSServer struct {
	Name       string    `json:"name"`
	Use        string    `json:"use"`
	Address    string    `json:"address"`
	Transport  string    `json:"transport"`
	State      string    `json:"state"` // alive, dead
	Since      time.Time `json:"since"`
	LastAnswer time.Time `json:"last_answer"`
	Requests   uint64    `json:"requests"`
	Repeated   uint64    `json:"repeated"`
	Accepts    uint64    `json:"accepts"`
	Rejects    uint64    `json:"rejects"`
	Responses  uint64    `json:"responses"` // to accounting
	Timeouts   uint64    `json:"timeouts"`
	Bad        uint64    `json:"bad"` // answers that were not believed, or not understood
	Waiting    int       `json:"waiting"`
}

// Access is the part of Control that is about subscribers who sign in.
type Access interface {
	// Subscribers are all, at most limit (0: all), or those whom key names, with their attempts.
	Subscribers(key string, limit uint32) []Subscriber
	AddressPools() []AddressPool
	RADIUS() []RADIUSServer
}

var (
	subscriberColumns = columns[Subscriber](`SUBSCRIBER=User, STATE, KIND, LINE, MAC, IPV4, IPV6, DELEGATED, PROFILE, SINCE,
		UP BYTES=UplinkBytes, DOWN BYTES=DownlinkBytes`)
	attemptColumns = columns[Attempt]("ATTEMPT OF=User, KIND, LAST, TIMES=Count, OUTCOME",
		str("OUTCOME", func(a *Attempt) string { return yesNo(a.Why == "", "let in", a.Why) }))
	poolColumns = columns[AddressPool](`POOL=Name, INSTANCE, NETWORK, LENGTH, SIZE, USED, RESERVED, HELD, DECLINED, GIVEN, AGAIN,
		REFUSED`)
	radiusColumns = columns[RADIUSServer](`RADIUS=Name, USE, ADDRESS, TRANSPORT, STATE, SINCE, REQUESTS, REPEATED, ACCEPTS, REJECTS,
		RESPONSES, TIMEOUTS, BAD, WAITING`)
)

var subscriberTable = (&Table{
	Name: "subscriber", Key: true,
	Short:  "wireline subscribers; of one by name, MAC, address, circuit id or line also the last attempts to sign in",
	Answer: reflect.TypeFor[[]Subscriber](),
	Own: func(c Control, key string, limit uint32) any {
		return append([]Subscriber{}, c.Subscribers(key, limit)...)
	},
	Print: printer("subscriber", func(w io.Writer, list []Subscriber) error {
		if err := write(w, subscriberColumns, list); err != nil {
			return err
		}
		for i := range list {
			if len(list[i].Attempts) > 0 {
				fmt.Fprintln(w)
				if err := write(w, attemptColumns, list[i].Attempts); err != nil {
					return err
				}
			}
		}
		return nil
	}),
}).rates("user line", "state kind ipv4 since", "downlink_bytes uplink_bytes downlink_packets uplink_packets")

var (
	poolTable = ofControl("pool", "pools of addresses for subscribers who sign in", poolColumns,
		Control.AddressPools, func(p *AddressPool) string { return p.Name }).
		rates("name", "size used reserved held declined", "given again refused")
	radiusTable = ofControl("radius", "RADIUS servers", radiusColumns,
		Control.RADIUS, func(s *RADIUSServer) string { return s.Name }).
		rates("name use", "state waiting", "requests accepts rejects responses timeouts repeated bad")
)
