// SPDX-License-Identifier: Apache-2.0

package radius

import (
	"errors"
	"time"
)

var (
	errAddress = errors.New("an answer from another address")
	errOther   = errors.New("an answer of another kind")
	errGarbled = errors.New("an answer that is none")
)

// unreachableError is why a server cannot be asked.
type unreachableError struct{ error }

// faults are why an answer is not believed: a word, and the server's state.
var faults = map[error]struct{ word, text string }{
	ErrUnsigned: {"unsigned", "answers, but is not signed: have it send Message-Authenticator, " +
		"or set message_authenticator: optional"},
	ErrSignatureLate: {"signed-late", "answers, signed, but not first: set message_authenticator: anywhere"},
	ErrSignature:     {"signature", "answers, but its Message-Authenticator is wrong"},
	ErrAuthenticator: {"authenticator", "answers, but with a wrong authenticator: is the secret another one?"},
	errAddress:       {"address", "answers, but from another address than it is asked at"},
	errOther:         {"code", "answers, but not to what is asked: is the port that of another service?"},
	errGarbled:       {"malformed", "answers, but not in the form of RADIUS: is the port that of another service?"},
}

// FaultError is ErrAway of a server that does answer, but is not believed, or that cannot be asked.
type FaultError struct {
	Server string
	Err    error // of Verify, one of faults, or the system's
}

func (e *FaultError) Error() string {
	if u, ok := e.Err.(*unreachableError); ok {
		return "RADIUS server " + e.Server + " cannot be asked: " + u.Error()
	}
	return "RADIUS server " + e.Server + " " + faults[e.Err].text
}

// Word is the reason as one word.
func (e *FaultError) Word() string {
	if _, ok := e.Err.(*unreachableError); ok {
		return "unreachable"
	}
	return faults[e.Err].word
}

// News is of a server.
type News struct {
	Alive  bool
	Turned bool        // it is given up now, or asked again; else only Fault is news
	Fault  *FaultError // nil: it is silent, or well
}

// Unwrap has it be both.
func (e *FaultError) Unwrap() []error { return []error{ErrAway, e.Err} }

// toldAgain is how long a recurring fault is not reported again.
const toldAgain = time.Hour

// unreachable notes that the server cannot be asked; the reason is reported when the server is given up. The lock is
// held.
func (s *server) unreachable(err error) {
	s.counts.ConnectFailures++
	s.fault, s.faulty = &FaultError{s.name, &unreachableError{err}}, time.Now()
}

// doubt notes that an answer is not believed, and reports a new reason. It is called with the lock, and returns
// without.
func (s *server) doubt(err error) {
	s.counts.failed(err)
	now, f := time.Now(), &FaultError{s.name, err}
	word := f.Word()
	before, told := s.told[word]
	news := (s.fault == nil || s.fault.Word() != word) && (!told || now.Sub(before) > toldAgain)
	s.fault, s.faulty = f, now
	if news {
		s.told[word] = now
	}
	alive := s.living.Load()
	s.mu.Unlock()
	if news {
		s.changed(s.name, News{Alive: alive, Fault: f})
	}
}

// away is ErrAway, or of a server that answers, why it is not believed.
func (c *Client) away() error {
	for _, s := range c.servers {
		s.mu.Lock()
		f := s.fault
		s.mu.Unlock()
		if f != nil {
			return f
		}
	}
	return ErrAway
}
