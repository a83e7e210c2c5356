// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"errors"
	"maps"
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
		var err error
		v.Left, err = apply(&v.Plan, p.Attributes, nil)
		if err == nil {
			v.Accept = true
			s.ignored.count(v.Left)
		} else {
			v.Plan, v.Left = access.Plan{}, nil
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

// tally counts attributes that were left out, by name.
type tally struct {
	mu     sync.Mutex
	counts map[string]uint64
}

const tallied = 256

func (t *tally) count(left []access.Left) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]uint64{}
	}
	for _, one := range left {
		if _, ok := t.counts[one.What]; !ok && len(t.counts) >= tallied {
			one.What = others
		}
		t.counts[one.What]++
	}
}

func (t *tally) names() map[string]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}
