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

// Operators see the reason: the log line and the last refusals name peer, cause, IE, rule and the session layer's text.
// A flood of unknown peers does not displace the refusals of known ones.
func TestRefusalsInWords(t *testing.T) {
	var log lines
	s := &journal{log: slog.New(slog.NewTextHandler(&log, nil)), peers: &peers{}}
	var told []string
	s.tell = func(kind, about string, args ...any) { told = append(told, fmt.Sprint(kind, " ", about, args)) }
	s.peers.index.Store(&index{byAddr: map[netip.Addr]*source{netip.MustParseAddr("10.0.0.2"): {}}})
	peer := netip.MustParseAddrPort("10.0.0.2:8805")
	e := whyOf(&pfcp.SessionEstablishmentResponse{Cause: pfcp.CauseRuleFailure, Offending: 21,
		Failed: &pfcp.FailedRule{Type: pfcp.RulePDR, ID: 7}, Text: "the F-TEID is another session's"})
	for range 3 {
		s.refused(0, peer, pfcp.SessionEstablishmentRequestType, e)
	}
	for i := range 1000 {
		s.refused(rejectNotAllowed, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}), 8805),
			pfcp.AssociationSetupRequestType, &pfcp.Error{Cause: pfcp.CauseRejected,
				Text: "the address is not in pfcp.peers"})
	}
	for i := range 40 {
		s.refused(0, peer, pfcp.SessionModificationRequestType,
			&pfcp.Error{Cause: pfcp.CauseContextNotFound, Text: fmt.Sprint(i)})
	}
	s.refused(0, peer, pfcp.SessionEstablishmentRequestType, e)
	list := s.count.refusals.newestFirst()
	testkit.FatalIf(t, len(list) != refusalsOfPeers+refusalsOfUnknown, "%d refusals are remembered", len(list))
	r := list[0]
	r.Time = r.Time.Truncate(0)
	if r.Peer != "10.0.0.2" || r.Message != "session-establishment-request" || r.Reason != "rule-failure" ||
		r.Cause != 73 || r.IE != 21 ||
		r.Rule != "PDR 7" || r.Text != "the F-TEID is another session's" {
		t.Errorf("%+v", r)
	}
	testkit.Equal(t, s.count.rejected[causeReject(pfcp.CauseRuleFailure)].Load(), 4, "counted")
	if text := log.text.String(); !strings.Contains(text, `rule="PDR 7"`) ||
		!strings.Contains(text, "another session's") ||
		strings.Count(text, "\n") > 6 {
		t.Errorf("the log:\n%s", text)
	}
	s.reject(rejectVersion, peer, "")
	all := strings.Join(told, "\n")
	testkit.ErrorIf(t, !strings.Contains(all,
		"n4.refused 10.0.0.2[message session-establishment-request reason rule-failure "+
			"cause 73 ie 21 rule PDR 7 why the F-TEID is another session's") ||
		!strings.Contains(all, "n4.refused 10.0.0.2[reason version why ") ||
		len(told) != strings.Count(log.text.String(), "\n"), "told:\n%s", all)
}

// TS 29.244 §7.2.2.4.2: the SEID of an answer is 0 only where the peer's is not known. CP functions look for the
// session by it: with 0 they never see the cause.
func TestRefusalsHaveTheSEIDOfTheSession(t *testing.T) {
	a, b := newSMF(t, "smf1", "127.0.0.1:0"), newSMF(t, "smf2", "127.0.0.2:0")
	_ = start(t, quiet(a.peer(), b.peer()), nil, a, b)
	a.mustSetUp()
	b.mustSetUp()
	seid := a.establish(77)
	both := group(10, ie(108, 0, 0, 0, 1), ie(44, 3)) // Update FAR: drop and forward
	cut := []byte{0, 10, 0, 9}                        // an IE that is longer than the message
	modify, remove := pfcp.SessionModificationRequestType, pfcp.SessionDeletionRequestType
	establish := func(more ...[]byte) []byte {
		ies := append([][]byte{nodeIE(a.node)}, more...)
		return message(pfcp.SessionEstablishmentRequestType, 0, a.next(), ies...)
	}
	fseid := fseidIE(55, a.addr.Addr())
	for _, row := range []struct {
		name  string
		from  *smf
		b     []byte
		cause pfcp.Cause
		seid  uint64
	}{
		{"incorrect IE", a, message(modify, seid, a.next(), both), pfcp.CauseMandatoryIEIncorrect, 77},
		{"broken message", a, message(modify, seid, a.next(), cut), pfcp.CauseInvalidLength, 77},
		{"broken deletion", a, message(remove, seid, a.next(), cut), pfcp.CauseInvalidLength, 77},
		{"no such session", a, message(modify, seid+1, a.next(), both), pfcp.CauseMandatoryIEIncorrect, 0},
		{"another's session", b, message(modify, seid, b.next(), both), pfcp.CauseMandatoryIEIncorrect, 0},
		{"establishment", a, establish(fseid, group(3, ie(108, 0, 0, 0, 1), ie(44, 0))),
			pfcp.CauseMandatoryIEIncorrect, 55},
		{"broken establishment", a, establish(fseid, cut), pfcp.CauseInvalidLength, 55},
		{"establishment without F-SEID", a, establish(), pfcp.CauseMandatoryIEMissing, 0},
	} {
		r := row.from.ask(row.b)
		r.wants(row.cause, row.name)
		testkit.Equal(t, r.seid, row.seid, "SEID: %s", row.name)
	}
}
