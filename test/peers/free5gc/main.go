// SPDX-License-Identifier: Apache-2.0

// An SMF that speaks PFCP by free5GC's library, which encodes its messages and decodes the UPF's, with the rules of
// free5GC's SMF (internal/context/datapath.go there). Commands come on standard input, answers and reports go to
// standard output, one JSON object a line.
//
// usage: free5gc SMF-ADDRESS UPF-ADDRESS N3-ADDRESS UE-ADDRESS
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/free5gc/pfcp"
	"github.com/free5gc/pfcp/pfcpType"
)

const localSEID = 0x1efcd

type smf struct {
	conn     *net.UDPConn
	self     net.IP
	n3, ue   net.IP
	start    time.Time
	sequence uint32
	remote   atomic.Uint64
	answers  chan *pfcp.Message
	out      chan any
}

// line is what goes to standard output.
type line struct {
	Event string  `json:"event"`
	Cause uint8   `json:"cause,omitempty"`
	PDR   uint16  `json:"pdr,omitempty"`
	Usage []usage `json:"usage,omitempty"`
	Text  string  `json:"text,omitempty"`
}

type usage struct {
	URR      uint32 `json:"urr"`
	Total    uint64 `json:"total"`
	Uplink   uint64 `json:"uplink"`
	Downlink uint64 `json:"downlink"`
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: free5gc SMF-ADDRESS UPF-ADDRESS N3-ADDRESS UE-ADDRESS")
		os.Exit(2)
	}
	s := &smf{self: address(1), n3: address(3), ue: address(4), start: time.Now().Add(-time.Minute),
		answers: make(chan *pfcp.Message, 1), out: make(chan any, 64)}
	conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: s.self, Port: 8805}, &net.UDPAddr{IP: address(2), Port: 8805})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s.conn = conn
	go s.print()
	go s.receive()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		s.out <- s.command(in.Text())
	}
}

func address(n int) net.IP { return net.ParseIP(os.Args[n]).To4() }

func (s *smf) print() {
	out := json.NewEncoder(os.Stdout)
	for l := range s.out {
		if out.Encode(l) != nil {
			os.Exit(1)
		}
	}
}

func (s *smf) send(kind pfcp.MessageType, seid *uint64, sequence uint32, body any) error {
	h := pfcp.Header{Version: pfcp.PfcpVersion, MessageType: kind, SequenceNumber: sequence}
	if seid != nil {
		h.S, h.SEID = pfcp.SEID_PRESENT, *seid
	}
	m := pfcp.Message{Header: h, Body: body}
	b, err := m.Marshal()
	if err == nil {
		_, err = s.conn.Write(b)
	}
	return err
}

// receive answers the UPF's requests and hands its answers over.
func (s *smf) receive() {
	b := make([]byte, 2048) // as free5GC's SMF
	for {
		n, err := s.conn.Read(b)
		if err != nil {
			continue // refused: the UPF is not there yet
		}
		m := new(pfcp.Message)
		if err := m.Unmarshal(append([]byte(nil), b[:n]...)); err != nil {
			if m.Header.MessageType == pfcp.PFCP_NODE_REPORT_REQUEST {
				continue // User Plane Path Failure Report: unreadable for the library
			}
			s.out <- line{Event: "malformed", Text: fmt.Sprintf("%v: %x", err, b[:n])}
			continue
		}
		switch body := m.Body.(type) {
		case pfcp.HeartbeatRequest:
			err = s.send(pfcp.PFCP_HEARTBEAT_RESPONSE, nil, m.Header.SequenceNumber,
				pfcp.HeartbeatResponse{RecoveryTimeStamp: s.recovery()})
		case pfcp.PFCPSessionReportRequest:
			seid := s.remote.Load()
			s.out <- told(body)
			err = s.send(pfcp.PFCP_SESSION_REPORT_RESPONSE, &seid, m.Header.SequenceNumber,
				pfcp.PFCPSessionReportResponse{Cause: &pfcpType.Cause{CauseValue: pfcpType.CauseRequestAccepted}})
		default:
			s.answers <- m
		}
		if err != nil {
			s.out <- line{Event: "failed", Text: err.Error()}
		}
	}
}

func told(r pfcp.PFCPSessionReportRequest) line {
	l := line{Event: "report"}
	if d := r.DownlinkDataReport; d != nil {
		l.PDR = d.PDRID.RuleId
	}
	for _, u := range r.UsageReport {
		l.Usage = append(l.Usage, measured(u.URRID, u.VolumeMeasurement))
	}
	return l
}

func measured(id *pfcpType.URRID, v *pfcpType.VolumeMeasurement) usage {
	u := usage{URR: id.UrrIdValue}
	if v != nil {
		u.Total, u.Uplink, u.Downlink = v.TotalVolume, v.UplinkVolume, v.DownlinkVolume
	}
	return u
}

func (s *smf) request(kind pfcp.MessageType, seid *uint64, body any) (*pfcp.Message, error) {
	s.sequence++
	if err := s.send(kind, seid, s.sequence, body); err != nil {
		return nil, err
	}
	for end := time.After(5 * time.Second); ; {
		select {
		case m := <-s.answers:
			if m.Header.SequenceNumber == s.sequence && m.Header.MessageType == kind+1 {
				return m, nil
			}
		case <-end:
			return nil, fmt.Errorf("no answer to message %d", kind)
		}
	}
}

func (s *smf) command(text string) line {
	var name, gnb string
	var teid uint32
	var action, flags int
	if n, _ := fmt.Sscan(text, &name, &teid, &gnb, &action, &flags); n == 0 {
		return line{Event: "failed", Text: "no command"}
	}
	seid := s.remote.Load()
	var m *pfcp.Message
	var err error
	switch name {
	case "associate":
		m, err = s.request(pfcp.PFCP_ASSOCIATION_SETUP_REQUEST, nil, pfcp.PFCPAssociationSetupRequest{NodeID: s.node(),
			RecoveryTimeStamp: s.recovery(), CPFunctionFeatures: &pfcpType.CPFunctionFeatures{}})
	case "establish":
		m, err = s.request(pfcp.PFCP_SESSION_ESTABLISHMENT_REQUEST, new(uint64), s.establishment())
	case "connect":
		m, err = s.request(pfcp.PFCP_SESSION_MODIFICATION_REQUEST, &seid,
			s.connection(teid, net.ParseIP(gnb).To4(), action, flags))
	case "query":
		m, err = s.request(pfcp.PFCP_SESSION_MODIFICATION_REQUEST, &seid,
			pfcp.PFCPSessionModificationRequest{CPFSEID: s.fseid(),
				QueryURR: []*pfcp.QueryURR{{URRID: &pfcpType.URRID{UrrIdValue: 1}},
					{URRID: &pfcpType.URRID{UrrIdValue: 2}}}})
	case "delete":
		m, err = s.request(pfcp.PFCP_SESSION_DELETION_REQUEST, &seid, pfcp.PFCPSessionDeletionRequest{})
	case "release":
		m, err = s.request(pfcp.PFCP_ASSOCIATION_RELEASE_REQUEST, nil,
			pfcp.PFCPAssociationReleaseRequest{NodeID: s.node()})
	default:
		err = fmt.Errorf("no such command: %s", name)
	}
	if err != nil {
		return line{Event: "failed", Text: err.Error()}
	}
	return s.answer(m)
}

func (s *smf) answer(m *pfcp.Message) line {
	l := line{Event: "answer"}
	cause := func(c *pfcpType.Cause) {
		if c != nil {
			l.Cause = c.CauseValue
		}
	}
	switch b := m.Body.(type) {
	case pfcp.PFCPAssociationSetupResponse:
		cause(b.Cause)
	case pfcp.PFCPAssociationReleaseResponse:
		cause(b.Cause)
	case pfcp.PFCPSessionEstablishmentResponse:
		cause(b.Cause)
		if b.UPFSEID != nil {
			s.remote.Store(b.UPFSEID.Seid)
		}
	case pfcp.PFCPSessionModificationResponse:
		cause(b.Cause)
		for _, u := range b.UsageReport {
			l.Usage = append(l.Usage, measured(u.URRID, u.VolumeMeasurement))
		}
	case pfcp.PFCPSessionDeletionResponse:
		cause(b.Cause)
		for _, u := range b.UsageReport {
			l.Usage = append(l.Usage, measured(u.URRID, u.VolumeMeasurement))
		}
	default:
		l.Text = fmt.Sprintf("%T", b)
	}
	return l
}
