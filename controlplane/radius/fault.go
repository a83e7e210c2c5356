// SPDX-License-Identifier: Apache-2.0

package radius

import "time"

// faults are why an answer is not believed: a word, and what to say of the server.
var faults = map[error]struct{ word, text string }{
	ErrUnsigned: {"unsigned", "answers, but is not signed: have it send Message-Authenticator, " +
		"or set message_authenticator: optional"},
	ErrSignatureLate: {"signed-late", "answers, signed, but not first: set message_authenticator: anywhere"},
	ErrSignature:     {"signature", "answers, but its Message-Authenticator is wrong"},
	ErrAuthenticator: {"authenticator", "answers, but with a wrong authenticator: is the secret another one?"},
}

// FaultError is ErrAway of a server that does answer, but is not believed.
type FaultError struct {
	Server string
	Err    error // of Verify
}

func (e *FaultError) Error() string { return "RADIUS server " + e.Server + " " + faults[e.Err].text }

// Word is the reason as one word.
func (e *FaultError) Word() string { return faults[e.Err].word }

// Unwrap has it be both.
func (e *FaultError) Unwrap() []error { return []error{ErrAway, e.Err} }

// toldAgain is how long one and the same fault, which comes and goes, is not told again.
const toldAgain = time.Hour

// doubt notes that an answer to a request is not believed, and tells whether that is news. The lock is held.
func (s *server) doubt(err error) (news bool) {
	s.counts.failed(err)
	now := time.Now()
	before, told := s.told[err]
	news = s.fault != err && (!told || now.Sub(before) > toldAgain)
	s.fault, s.faulty = err, now
	if news {
		s.told[err] = now
	}
	return news
}

// away is ErrAway, or of a server that answers, why it is not believed.
func (c *Client) away() error {
	for _, s := range c.servers {
		s.mu.Lock()
		err := s.fault
		s.mu.Unlock()
		if err != nil {
			return &FaultError{s.Name, err}
		}
	}
	return ErrAway
}
