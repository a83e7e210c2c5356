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
	Circuit         string    `json:"circuit" private:"name"` // circuit id
	Remote          string    `json:"remote" private:"name"`  // remote id
	IPv4            string    `json:"ipv4"`
	IPv6            string    `json:"ipv6"`      // prefix
	Delegated       string    `json:"delegated"` // delegated prefix
	Profile         string    `json:"profile"`
	Instance        string    `json:"instance"`
	UplinkList      string    `json:"uplink_list"`       // access list
	DownlinkList    string    `json:"downlink_list"`     // access list
	Scheduler       string    `json:"scheduler_profile"` // profile of its pipe
	UpRate          uint64    `json:"up_kbit"`           // of its own; 0: the profile's
	DownRate        uint64    `json:"down_kbit"`         // of its own; 0: the profile's
	Since           time.Time `json:"since"`
	UplinkPackets   uint64    `json:"uplink_packets"`
	UplinkBytes     uint64    `json:"uplink_bytes"`
	DownlinkPackets uint64    `json:"downlink_packets"`
	DownlinkBytes   uint64    `json:"downlink_bytes"`
	Session         string    `json:"session"`            // Acct-Session-Id
	Object          string    `json:"object"`             // name in show session
	Attempts        []Attempt `json:"attempts,omitempty"` // newest first; of one subscriber only
}

// Attempt is one to sign in, or several alike.
type Attempt struct {
	User  string    `json:"user" private:"name"`
	Kind  string    `json:"kind"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Count int       `json:"count"`              // of attempts alike
	Why   string    `json:"why" private:"text"` // empty: it was let in
}

// AddressPool has addresses of subscribers who sign in.
type AddressPool struct {
	Name     string `json:"name"`
	Instance string `json:"instance"`
	Network  string `json:"network"`  // prefix
	Length   int    `json:"length"`   // of what a subscriber gets
	Size     uint64 `json:"size"`     // addresses or prefixes
	Used     uint64 `json:"used"`     // by subscribers
	Reserved uint64 `json:"reserved"` // by name, MAC or circuit id
	Held     uint64 `json:"held"`     // given back, not given again yet
	Declined uint64 `json:"declined"` // by DHCP clients
	Given    uint64 `json:"given"`    // since start
	Again    uint64 `json:"again"`    // of given: to the subscriber that had it before
	Refused  uint64 `json:"refused"`  // requests without a free one
}

// RADIUSServer is one of authentication or accounting.
type RADIUSServer struct {
	Name       string    `json:"name"`
	Use        string    `json:"use"` // authentication, accounting
	Address    string    `json:"address"`
	Transport  string    `json:"transport"`
	State      string    `json:"state"` // alive, dead
	Since      time.Time `json:"since"`
	LastAnswer time.Time `json:"last_answer"`
	Requests   uint64    `json:"requests"`
	Repeated   uint64    `json:"repeated"` // requests sent again
	Accepts    uint64    `json:"accepts"`
	Rejects    uint64    `json:"rejects"`
	Responses  uint64    `json:"responses"` // to accounting
	Timeouts   uint64    `json:"timeouts"`  // requests without an answer
	Bad        uint64    `json:"bad"`       // answers that were not believed, or not understood
	Waiting    int       `json:"waiting"`   // requests
}

// Sender is a pair of tags of a port that sends much to the control plane.
type Sender struct {
	Line   string    `json:"line"`
	MAC    string    `json:"mac"`    // that sends most of them
	Frames uint64    `json:"frames"` // at least, of the last one to two minutes
	PPPoE  uint64    `json:"pppoe"`  // of them
	Last   time.Time `json:"last"`
}

// Access is the part of Control that is about subscribers who sign in.
type Access interface {
	// Subscribers are all, at most limit (0: all), or those whom key names, with their attempts.
	Subscribers(key string, limit uint32) []Subscriber
	SignIns
}

// SignIns are what goes on beside the subscribers.
type SignIns interface {
	AddressPools() []AddressPool
	RADIUS() []RADIUSServer
	Senders() []Sender
	FramesLost() uint64 // to subscribers: the data plane's channel was closed or full
}

var (
	subscriberColumns = columns[Subscriber](`SUBSCRIBER=User, STATE, KIND, LINE, MAC, IPV4, IPV6, DELEGATED, PROFILE,
		SINCE, UP BYTES=UplinkBytes, DOWN BYTES=DownlinkBytes`)
	attemptColumns = columns[Attempt]("ATTEMPT OF=User, KIND, LAST, TIMES=Count, OUTCOME",
		str("OUTCOME", func(a *Attempt) string { return yesNo(a.Why == "", "let in", a.Why) }))
	poolColumns = columns[AddressPool](`POOL=Name, INSTANCE, NETWORK, LENGTH, SIZE, USED, RESERVED, HELD, DECLINED,
		GIVEN, AGAIN, REFUSED`)
	senderColumns = columns[Sender]("SENDER=Line, MAC, FRAMES, PPPOE, LAST")
	radiusColumns = columns[RADIUSServer](`RADIUS=Name, USE, ADDRESS, TRANSPORT, STATE, SINCE, REQUESTS, REPEATED,
		ACCEPTS, REJECTS, RESPONSES, TIMEOUTS, BAD, WAITING`)
)

var subscriberTable = (&Table{
	Name: "subscriber", Key: true,
	Short:  "wireline subscribers; of one by name, MAC, address, circuit id or line also the last attempts to sign in",
	Answer: reflect.TypeFor[[]Subscriber](), Titles: titlesOf(subscriberColumns),
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
	senderTable = ofControl("sender", "lines with most frames for the control plane, as in a flood", senderColumns,
		Control.Senders, func(s *Sender) string { return s.Line }).
		rates("line", "mac frames pppoe last", "")
	radiusTable = ofControl("radius", "RADIUS servers", radiusColumns,
		Control.RADIUS, func(s *RADIUSServer) string { return s.Name }).
		rates("name use", "state waiting", "requests accepts rejects responses timeouts repeated bad")
)
