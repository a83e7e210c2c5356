// SPDX-License-Identifier: Apache-2.0

package events

import (
	"slices"
	"strings"
)

// Kind is one kind of event, as in docs/reference/events.md.
type Kind struct {
	Name    string
	Subject string // what the event's subject is
	Fields  string // names of its fields; not each is in each event
	Text    string
}

// Kinds are all that there are, in the order of docs/reference/events.md.
var Kinds = []Kind{
	{"control.started", "the control plane's version", "pid file", "The control plane runs."},
	{"control.stopping", "the control plane's version", "signal", "A signal asked it to end."},
	{"dataplane.up", "its version", "pid boot objects", "A connection to the data plane."},
	{"dataplane.down", "its version", "pid", "The connection was lost."},
	{"dataplane.ended", "how", "pid times since words", "The data plane that the control plane starts has ended, " +
		"or does not start; `times`: in a row; `words`: its last lines."},
	{"dataplane.refused", "its version", "error", "The data plane does not take the configuration."},
	{"state.moved-aside", "the file", "to error",
		"A file that was kept for a restart is damaged, or of another version: the start went on without it."},
	{"config.applied", "the file", "objects put deleted changes more note",
		"Another configuration runs. `changes`: up to 64, `add`, `change`, `delete` with kind and name."},
	{"config.refused", "the file", "error", "A configuration was asked for and refused."},
	{"gateway.drained", "", "announced kept ended accounting associations sessions error",
		"An operator took the gateway out of service: what `isthmus drain` prints."},
	{"gateway.resumed", "", "error", "An operator took that back."},
	{"association.release-requested", "node id", "graceful error", "An operator asked for its release."},
	{"trace.begun", "session, or empty", "query", "A client follows packets, or captures them."},
	{"stream.changed", "name, or empty", "verb count error", "Test traffic was loaded, started or stopped."},
	{"association.up", "node id", "address set retained dialled", "Set up, or set up again."},
	{"association.released", "node id", "", "The CP function released it."},
	{"association.path-failed", "node id", "error headless", "Heartbeats are not answered."},
	{"association.path-restored", "node id", "", "They are again."},
	{"association.restarted", "node id", "recovery successor sessions",
		"The CP function restarted: its sessions go."},
	{"association.headless-expired", "node id", "successor sessions",
		"Its path failed for too long: its sessions go."},
	{"association.guessing", "node id", "misses within", "Many requests for sessions that do not exist."},
	{"association.set-refused", "node id", "from claimed", "It claimed an SMF set that it is no member of."},
	{"association.restart-unconfirmed", "node id", "", "A newer time stamp that the peer did not confirm."},
	{"association.store-failed", "node id", "error", "The store does not take it."},
	{"n4.refused", "address of a PFCP peer", "message reason cause ie rule why more",
		"A request was refused, or a message dropped: no `message`. Of each reason one in a second."},
	{"session.established", "name", "association", "A session over PFCP, while few are made."},
	{"session.deleted", "name", "association", "A session over PFCP went, while few go."},
	{"session.count", "", "established modified deleted",
		"Sessions without an event of their own since the last such event; at most one in ten seconds."},
	{"subscriber.up", "user, or MAC", "session line ipv4 ipv6 profile more",
		"Its packets pass. Of each kind 20 in a second, then `more`."},
	{"subscriber.refused", "user, or MAC", "why reason line more", "It was not let in."},
	{"subscriber.left-out", "attribute, or setting", "subscriber why more",
		"What only tunes, and was left out of a plan. Of each subject one in a minute, then `more`."},
	{"subscriber.down", "user, or MAC", "session cause line seconds uplink_bytes downlink_bytes more",
		"Its session ended."},
	{"subscriber.quota", "user, or MAC", "session bytes more", "Its quota is used up."},
	{"subscriber.cleared", "what was named", "cause ended error", "An operator ended sessions."},
	{"radius.down", "RADIUS server", "use reason why more",
		"It is given up for a while; others are asked, or local users, where there are any. " +
			"`reason`: `silent`, `unreachable`, or that of radius.doubted."},
	{"radius.up", "RADIUS server", "use more", "It answers again, or is tried again."},
	{"radius.doubted", "RADIUS server", "use reason why more",
		"It answers, but is not believed; each reason once an hour at most."},
	{"radius.change-refused", "client of radius.coa, or unlisted", "from request user session cause why more",
		"A CoA-Request or Disconnect-Request was not carried out; `cause`: Error-Cause, or dropped. " +
			"Of each subject 20 in a second."},
	{"collector.down", "collector of nat_log", "protocol error",
		"Records of NAT44 cannot be sent there, or its host refuses them; it is tried again."},
	{"collector.up", "collector of nat_log", "protocol lost",
		"They can be again; `lost`: records since its start."},
	{"pool.watermark", "pool", "instance level rising used size",
		"Its use passed 80, 95 or 100 %, or fell well below."},
	{"peer.up", "address of a GTP-U peer", "local", "It answers again."},
	{"peer.down", "address of a GTP-U peer", "local", "It does not answer."},
	{"peer.restarted", "address of a GTP-U peer", "local", "Its recovery counter changed."},
	{"peer.error-indication", "address of a GTP-U peer", "teid session more",
		"It does not know a tunnel; `more`: others of the last seconds."},
	{"port.up", "port", "driver speed_mbps", "The link is up."},
	{"port.down", "port", "driver", "The link is down."},
	{"port.gone", "port", "driver", "The device was taken away."},
	{"route.ignored", "reason", "routes text", "More routes of the kernel are not followed: " +
		"`show route --ignored`. Of each reason at most one in ten seconds."},
	{"drop.rising", "reason", "rate before text", "Ten packets a second or more, and four times what was usual."},
	{"drop.settled", "reason", "rate before steady",
		"Below twice what was usual; `steady`: ten minutes passed, the rate is the usual one now."},
	{"limit.near", "table", "used of", "Nine tenths are in use."},
	{"limit.released", "table", "used of", "Less than eight tenths are."},
	{"counter.watermark", "counter", "session seid packets bytes", "Sessions reached a watermark."},
	{"access.refused", "address", "reason more",
		"A client was turned away; `more`: others of the last seconds."},
}

// FirstWords are those of the kinds, each once.
func FirstWords() (words []string) {
	for _, k := range Kinds {
		word, _, _ := strings.Cut(k.Name, ".")
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// Known: a name is a kind, or the first word of some.
func Known(name string) bool {
	return slices.ContainsFunc(Kinds, func(k Kind) bool { return matches(k.Name, name) })
}

// matches: a kind is selected by its name or its first word.
func matches(kind, asked string) bool {
	return kind == asked || strings.HasPrefix(kind, asked) && kind[len(asked)] == '.'
}
