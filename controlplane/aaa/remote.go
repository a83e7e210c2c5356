// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"errors"
	"strings"
	"sync"

	"isthmus/controlplane/access"
	"isthmus/controlplane/ppp/chap"
	"isthmus/controlplane/radius"
)

// accessRequest is what a server is asked about a subscriber.
func (s *setup) accessRequest(r *access.Request, name, session string) *radius.Packet {
	p := &radius.Packet{Code: radius.AccessRequest, Attributes: make([]radius.Attribute, 0, 24)}
	p.Text(radius.UserName, name)
	switch r.Method {
	case access.None:
		password := string(s.config.AAA.Password)
		if password == "" {
			password = name
		}
		p.Attributes = append(p.Attributes, radius.Attribute{Type: radius.UserPassword,
			Value: []byte(password)})
	case access.PAP:
		p.Attributes = append(p.Attributes, radius.Attribute{Type: radius.UserPassword, Value: r.Password})
	case access.CHAP:
		p.Add(radius.CHAPPassword, append([]byte{r.Identifier}, r.Response...))
		p.Add(radius.CHAPChallenge, r.Challenge)
	case access.MSCHAPv2: // RFC 2548 §2.3.2: identifier, flags, then as in RFC 2759 without its flags
		p.Add(radius.MSCHAPChallenge, r.Challenge)
		if len(r.Response) == chap.ResponseSize {
			p.Add(radius.MSCHAP2Response, append([]byte{r.Identifier, 0}, r.Response[:chap.ResponseSize-1]...))
		}
	}
	identify(p, s.config.RADIUS.NAS.Identifier, s.config.RADIUS.NAS.Address.Addr)
	p.Text(radius.AcctSessionId, session)
	p.Add(radius.ChargeableUserIdentity, []byte{0}) // we support it (RFC 4372 §2.1)
	describe(p, r)
	return p
}

// remote asks the servers. away is called in place of done when none answers.
func (s *setup) remote(r *access.Request, name, session string, done func(*access.Verdict), away func(error)) {
	s.auth.Exchange(s.accessRequest(r, name, session), func(p *radius.Packet, err error) {
		switch {
		case errors.Is(err, radius.ErrAway), errors.Is(err, radius.ErrBusy), errors.Is(err, radius.ErrClosed):
			away(err)
		case err != nil:
			done(&access.Verdict{Why: "RADIUS: " + err.Error()})
		default:
			done(s.verdict(r, p))
		}
	})
}

// notPlan are attributes of an answer that say nothing about the plan.
var notPlan = map[radius.Type]bool{
	radius.MessageAuthenticator: true, radius.ReplyMessage: true, radius.ServiceType: true,
	radius.FramedProtocol: true,
	radius.MSCHAP2Success: true, radius.MSCHAPError: true, radius.ProxyState: true, radius.EventTimestamp: true,
	radius.FramedCompression: true, // none, or what we do not offer
	// Keys and policy of MPPE (RFC 3079), which PPP over Ethernet has no use for.
	radius.MSMPPEEncryptionPolicy: true, radius.MSMPPERecvKey: true,
	radius.MSMPPESendKey: true, radius.MSCHAPDomain: true,
}

// verdict reads an authentic answer.
func (s *setup) verdict(r *access.Request, p *radius.Packet) *access.Verdict {
	v := &access.Verdict{Message: messages(p)}
	// RFC 2548 §2.1.5, §2.3.3: the identifier, then text.
	if b := p.Get(radius.MSCHAP2Success); len(b) > 1 {
		v.Success = string(b[1:])
	}
	if b := p.Get(radius.MSCHAPError); len(b) > 1 {
		v.Failure = string(b[1:])
	}
	switch p.Code {
	case radius.AccessReject:
		v.Why = "refused by RADIUS"
		if v.Message != "" {
			v.Why += ": " + readable([]byte(v.Message))
		}
	case radius.AccessChallenge:
		v.Why = "RADIUS asks for more than a password (Access-Challenge)"
	default:
		if r.Method == access.MSCHAPv2 && v.Success == "" {
			v.Why = "RADIUS accepted MS-CHAPv2 without MS-CHAP2-Success"
			break
		}
		err := apply(&v.Plan, p.Attributes, func(t radius.Type) error {
			if !notPlan[t] {
				s.ignored.count(t)
			}
			return nil
		})
		if err == nil {
			v.Accept = true
		} else {
			v.Plan = access.Plan{}
			v.Why = "RADIUS: " + err.Error()
		}
	}
	if !v.Accept && r.Method == access.MSCHAPv2 && v.Failure == "" {
		v.Failure = failure(r.Challenge)
	}
	return v
}

func messages(p *radius.Packet) string {
	var lines []string
	for i := range p.Attributes {
		if p.Attributes[i].Type == radius.ReplyMessage {
			lines = append(lines, string(p.Attributes[i].Value))
		}
	}
	return strings.Join(lines, "\n")
}

// tally counts attributes that were ignored, by type.
type tally struct {
	mu     sync.Mutex
	counts map[radius.Type]uint64
	more   uint64 // of types beyond what is kept
}

const tallied = 256

func (t *tally) count(which radius.Type) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.counts[which]; !ok && len(t.counts) >= tallied {
		t.more++
		return
	}
	if t.counts == nil {
		t.counts = map[radius.Type]uint64{}
	}
	t.counts[which]++
}

func (t *tally) names() map[string]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]uint64{}
	for which, n := range t.counts {
		out[which.String()] = n
	}
	if t.more > 0 {
		out["others"] = t.more
	}
	return out
}
