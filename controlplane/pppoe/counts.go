// SPDX-License-Identifier: Apache-2.0

package pppoe

// Count is a counter.
type Count struct {
	Name, Doc string
	Value     uint64
}

const (
	padiReceived = iota
	padoSent
	padrReceived
	padsSent
	padtReceived
	padtSent
	signedIn
	replaced
	again
	malformed
	noService
	badCookie
	badAgent
	circuitChanged
	tooManyDelayed
	beginWaits
	beginAgain
	beginFull
	beginStale
	offersLine
	offersPort
	limitSessions
	limitPort
	limitLine
	limitHalfOpen
	unknownSession
	pppMalformed
	pppUnexpected
	pppStale
	counters
)

var countDocs = [counters][2]string{
	padiReceived:   {"padi", "PADI received"},
	padoSent:       {"pado", "PADO sent"},
	padrReceived:   {"padr", "PADR received"},
	padsSent:       {"pads", "PADS sent that begin a session"},
	padtReceived:   {"padt-received", "PADT that ended a session"},
	padtSent:       {"padt-sent", "PADT sent"},
	signedIn:       {"opened", "sessions that had a network protocol open"},
	replaced:       {"replaced", "sessions that a new PADR of the same MAC ended"},
	again:          {"padr-again", "PADR that came again and got the same PADS"},
	malformed:      {"malformed", "packets with lengths, codes or tags that do not fit"},
	noService:      {"service-name", "PADI and PADR for a service that is not offered"},
	badCookie:      {"cookie", "PADR without a cookie of ours for this line"},
	badAgent:       {"agent", "vendor tags of access nodes that are not well formed, and count as absent"},
	circuitChanged: {"circuit-changed", "PADR and PADT with another circuit id than that of the line's session"},
	tooManyDelayed: {"delayed", "PADI dropped because too many PADO wait"},
	beginWaits:     {"begin-waits", "PADI that wait: enough sign-ins are under way"},
	beginAgain:     {"begin-again", "PADI that came again while the first waits"},
	beginFull:      {"begin-full", "PADI dropped because too many wait, or too long to wait"},
	beginStale:     {"begin-stale", "PADI whose sender gave up while they waited"},
	offersLine:     {"offers-line", "PADI dropped: the line had as many PADO as it may have in a second"},
	offersPort:     {"offers-port", "PADI dropped: the port had"},
	limitSessions:  {"limit-sessions", "PADR refused: sessions of the concentrator"},
	limitPort:      {"limit-port", "PADR refused: sessions of the port"},
	limitLine:      {"limit-line", "PADR refused: sessions of the line"},
	limitHalfOpen:  {"limit-half-open", "PADR dropped: too many sessions are being set up"},
	unknownSession: {"unknown-session", "frames of sessions that are not known"},
	pppMalformed:   {"ppp-malformed", "PPP packets with lengths that do not fit"},
	pppUnexpected:  {"ppp-unexpected", "PPP packets of a protocol whose turn it is not"},
	pppStale:       {"ppp-stale", "PPP answers to no request"},
}

// Counts since the server was made.
func (s *Server) Counts() []Count {
	out := make([]Count, counters)
	for i, doc := range countDocs {
		out[i] = Count{doc[0], doc[1], s.counts[i]}
	}
	return out
}
