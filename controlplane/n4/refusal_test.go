// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// lines is a log that keeps what was written.
type lines struct {
	lock sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.text.Write(b)
}

// Operators see why: the log line and the last refusals name peer, cause, IE, rule and the session layer's words. A
// flood of unknown peers does not push out what peers were told.
func TestRefusalsInWords(t *testing.T) {
	var log lines
	s := &Server{log: slog.New(slog.NewTextHandler(&log, nil))}
	s.index.Store(&index{byAddr: map[netip.Addr]*source{netip.MustParseAddr("10.0.0.2"): {}}})
	peer := netip.MustParseAddrPort("10.0.0.2:8805")
	e := whyOf(&pfcp.SessionEstablishmentResponse{Cause: pfcp.CauseRuleFailure, Offending: 21,
		Failed: &pfcp.FailedRule{Type: pfcp.RulePDR, ID: 7}, Text: "the F-TEID is another session's"})
	for range 3 {
		s.refused(0, peer, pfcp.SessionEstablishmentRequestType, e)
	}
	for i := range 1000 {
		s.refused(rejectNotAllowed, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}), 8805),
			pfcp.AssociationSetupRequestType, &pfcp.Error{Cause: pfcp.CauseRejected, Text: "the address is not in pfcp.peers"})
	}
	for i := range 40 {
		s.refused(0, peer, pfcp.SessionModificationRequestType, &pfcp.Error{Cause: pfcp.CauseContextNotFound, Text: fmt.Sprint(i)})
	}
	s.refused(0, peer, pfcp.SessionEstablishmentRequestType, e)
	list := s.count.refusals.newestFirst()
	testkit.FatalIf(t, len(list) != refusalsOfPeers+refusalsOfUnknown, "%d refusals are remembered", len(list))
	r := list[0]
	r.Time = r.Time.Truncate(0)
	if r.Peer != "10.0.0.2" || r.Message != "session-establishment-request" || r.Reason != "rule-failure" || r.Cause != 73 || r.IE != 21 ||
		r.Rule != "PDR 7" || r.Text != "the F-TEID is another session's" {
		t.Errorf("%+v", r)
	}
	testkit.Equal(t, s.count.rejected[causeReject(pfcp.CauseRuleFailure)].Load(), 4, "counted")
	if text := log.text.String(); !strings.Contains(text, `rule="PDR 7"`) || !strings.Contains(text, "another session's") ||
		strings.Count(text, "\n") > 6 {
		t.Errorf("the log:\n%s", text)
	}
}
