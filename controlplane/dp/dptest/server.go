// SPDX-License-Identifier: Apache-2.0

// Package dptest is a data plane for tests: it keeps objects and answers the socket like isthmus-dp, without packets.
package dptest

import (
	"bufio"
	"cmp"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/access"
	"isthmus/controlplane/dp"
)

// ID names an object.
type ID struct {
	Kind uint32
	Key  string
}

// Server is one fake data plane on a Unix socket.
type Server struct {
	Path string

	mu         sync.Mutex
	listener   net.Listener
	conns      map[net.Conn]bool
	held       map[ID][]byte
	tables     map[uint32][][]byte
	refused    func(id ID, body []byte) bool
	refusal    string
	ruleKind   uint32 // that refusals name
	rule       uint32
	version    uint32
	layouts    []api.Layout
	page       uint32 // digests in one answer at most
	commits    int
	changes    int // in all commits
	streams    map[string]bool
	bootID     uint64
	listCalls  int
	usage      func(id ID, was, is []byte) []api.Usage
	events     []api.Event // not acknowledged
	raised     uint64
	subscriber *session       // who gets events
	channel    *session       // who gets frames
	frames     []access.Frame // that it sent
	ports      []api.FramePort
}

// New makes a server that is not listening yet.
func New(path string) *Server {
	return &Server{
		Path: path, conns: map[net.Conn]bool{}, held: map[ID][]byte{}, tables: map[uint32][][]byte{},
		streams: map[string]bool{}, version: api.Version, layouts: api.Layouts(), page: 100, bootID: 1,
	}
}

// Start listens at a path in the test's own directory and stops with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := New(t.TempDir() + "/dp.sock")
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Listen starts serving; after Kill it is the same process started again, with the objects left or set in Held.
func (s *Server) Listen() error {
	l, err := net.Listen("unix", s.Path)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.listener = l
	s.bootID++
	s.mu.Unlock()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[conn] = true
			s.mu.Unlock()
			go s.Serve(conn)
		}
	}()
	return nil
}

// Kill closes the socket and every connection at once.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		s.listener.Close()
		s.listener = nil
	}
	for c := range s.conns {
		c.Close()
	}
	clear(s.conns)
}

// Crash is Kill, and Listen of an empty process.
func (s *Server) Crash(t testing.TB) {
	t.Helper()
	s.Kill()
	s.mu.Lock()
	s.events = nil
	clear(s.held)
	clear(s.tables)
	s.mu.Unlock()
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
}

// Held returns a copy of what is held; SetHeld replaces it.
func (s *Server) Held() map[ID][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.held)
}

// Holds: exactly these objects are held.
func (s *Server) Holds(want []dp.Change) bool {
	held := s.Held()
	for i := range want {
		id := ID{Kind: want[i].Kind, Key: want[i].Key}
		if string(held[id]) != string(want[i].Body) {
			return false
		}
		delete(held, id)
	}
	return len(held) == 0
}

// SetHeld replaces what is held.
func (s *Server) SetHeld(held map[ID][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = map[ID][]byte{}
	maps.Copy(s.held, held)
}

// SetTable sets the rows that answer a stats request, each of these in a message.
func (s *Server) SetTable(table uint32, rows ...[]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables[table] = rows
}

// Refuse makes commits fail, with a text, that have such a change. nil accepts all.
func (s *Server) Refuse(text string, such func(id ID, body []byte) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal, s.refused = text, such
}

// Blame makes refusals name a rule.
func (s *Server) Blame(kind, rule uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ruleKind, s.rule = kind, rule
}

// SetVersion makes HELLO answer another API version.
func (s *Server) SetVersion(v uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = v
}

// SetLayouts makes HELLO answer other layouts.
func (s *Server) SetLayouts(l []api.Layout) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.layouts = l
}

// Counts returns the number of commits carried out and of changes in them.
func (s *Server) Counts() (commits, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits, s.changes
}

// Running: a stream was started.
func (s *Server) Running(stream string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[stream]
}

// Usage makes commits answer fn's rows for a change; was and is are the object's bodies, nil for none.
func (s *Server) Usage(fn func(id ID, was, is []byte) []api.Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage = fn
}

// Raise sends an event, and keeps it until it is acknowledged.
func (s *Server) Raise(e api.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raised++
	e.Sequence, e.BootID = s.raised, s.bootID
	s.events = append(s.events, e)
	if s.subscriber != nil {
		s.subscriber.raise(e)
	}
}

// Unacknowledged returns how many events wait for an acknowledgement.
func (s *Server) Unacknowledged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.events)
}

type change struct {
	id   ID
	body []byte // nil: delete
}

type session struct {
	s    *Server
	w    *bufio.Writer
	open bool
	txn  []change

	conn         net.Conn
	subscription api.Header    // of the request that events answer
	unsent       [][]byte      // messages that are no replies: events, frames
	more         chan struct{} // there are some
	ended        chan struct{}
}

// raise has one event written to the subscriber.
func (c *session) raise(e api.Event) {
	c.push(c.subscription, 0, api.Body(&e))
}

// push has one more answer to a request written.
func (c *session) push(h api.Header, flags uint16, body []byte) {
	h.Flags, h.Length = flags, uint32(len(body))
	c.unsent = append(c.unsent, append(api.Encode(&h), body...))
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// write sends them, in a goroutine of its own: a subscriber that is slow to read them must be able to go on
// acknowledging, as isthmus-dp lets it.
func (c *session) write() {
	for {
		select {
		case <-c.more:
		case <-c.ended:
			return
		}
		c.s.mu.Lock()
		list := c.unsent
		c.unsent = nil
		c.s.mu.Unlock()
		for i := range list {
			if _, err := c.conn.Write(list[i]); err != nil {
				return
			}
		}
	}
}

// Serve answers one connection until it ends.
func (s *Server) Serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	c := &session{s: s, w: bufio.NewWriter(conn), conn: conn, more: make(chan struct{}, 1), ended: make(chan struct{})}
	defer close(c.ended)
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.subscriber == c {
			s.subscriber = nil
		}
		if s.channel == c {
			s.channel = nil
		}
	}()
	for {
		var raw [api.SizeofHeader]byte
		if _, err := io.ReadFull(r, raw[:]); err != nil {
			return
		}
		var h api.Header
		if _, err := api.Decode(raw[:], &h); err != nil || h.Magic != api.Magic || h.Length > api.MaxBody {
			return
		}
		body := make([]byte, h.Length)
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		s.mu.Lock()
		ok := c.handle(h, body)
		ok = c.w.Flush() == nil && ok
		s.mu.Unlock()
		if !ok {
			return
		}
	}
}

func (c *session) reply(h api.Header, flags uint16, body []byte) bool {
	h.Flags, h.Length = flags, uint32(len(body))
	c.w.Write(api.Encode(&h))
	_, err := c.w.Write(body)
	return err == nil
}

func (c *session) status(h api.Header, code uint32, id ID, text string) bool {
	st := api.Status{Code: code, Kind: id.Kind}
	copy(st.Key[:], id.Key)
	copy(st.Text[:api.TextSize-1], text)
	flags := uint16(api.FLast)
	if code != 0 {
		flags |= api.FError
		st.RuleKind, st.Rule = c.s.ruleKind, c.s.rule
	}
	return c.reply(h, flags, api.Body(&st))
}

func (c *session) handle(h api.Header, body []byte) bool {
	switch h.Type {
	case api.TypeHello:
		hello := api.Hello{Version: c.s.version, Oldest: c.s.version, BootID: c.s.bootID, TSCHz: 1e9,
			Objects: uint32(len(c.s.held))}
		copy(hello.Build[:], "fake")
		return c.reply(h, 0, api.Body(&hello)) && c.reply(h, api.FLast, api.AppendRows(nil, c.s.layouts))
	case api.TypeBegin:
		c.open, c.txn = true, nil
		return c.status(h, 0, ID{}, "")
	case api.TypePut, api.TypeDelete:
		return c.change(h, body)
	case api.TypeCommit:
		return c.commit(h)
	case api.TypeSubscribe:
		if c.s.subscriber == c {
			return false
		}
		c.subscription, c.s.subscriber = h, c
		for _, e := range c.s.events {
			c.raise(e)
		}
		go c.write()
		return true
	case api.TypeChannel:
		if old := c.s.channel; old != nil && old != c {
			taken := api.Status{Code: uint32(syscall.ECANCELED)}
			copy(taken.Text[:], "another control plane took the channel over")
			old.push(old.subscription, api.FLast|api.FError, api.Body(&taken))
		}
		c.subscription, c.s.channel = h, c
		c.tellPorts()
		go c.write()
		return true
	case api.TypeChannelSend:
		frames, err := dp.ReadFrames(body, nil, func(k *api.Key) string { return api.CString(k[:]) })
		if c.s.channel == c {
			c.s.frames = append(c.s.frames, frames...)
		}
		return err == nil
	case api.TypeAcknowledge:
		var a api.Acknowledge
		if _, err := api.ReadRow(body, &a); err != nil {
			return false
		}
		for len(c.s.events) > 0 && c.s.events[0].Sequence <= a.Sequence {
			c.s.events = c.s.events[1:]
		}
		return true
	case api.TypeAbort:
		c.open, c.txn = false, nil
		return c.status(h, 0, ID{}, "")
	case api.TypeList:
		return c.list(h, body)
	case api.TypeStats:
		var req api.StatsRequest
		if _, err := api.ReadRow(body, &req); err != nil {
			return false
		}
		for rows := c.s.tables[req.Table]; ; rows = rows[1:] {
			if len(rows) < 2 {
				return c.reply(h, api.FLast, slices.Concat(rows...))
			}
			if !c.reply(h, 0, rows[0]) {
				return false
			}
		}
	case api.TypeStream:
		var cmd api.StreamCommand
		if _, err := api.ReadRow(body, &cmd); err != nil {
			return false
		}
		c.s.streams[api.CString(cmd.Name[:])] = cmd.Start == 1
		return c.status(h, 0, ID{}, "")
	}
	return c.status(h, 22, ID{}, "no such message")
}

func (c *session) change(h api.Header, body []byte) bool {
	var head api.ObjectHead
	rest, err := api.ReadRow(body, &head)
	if err != nil || !c.open {
		return false
	}
	ch := change{id: ID{head.Kind, api.CString(head.Key[:])}}
	if h.Type == api.TypePut {
		ch.body = append([]byte{}, rest...)
	}
	c.txn = append(c.txn, ch)
	return true
}

func (c *session) commit(h api.Header) bool {
	if !c.open {
		return c.status(h, 22, ID{}, "no transaction")
	}
	txn := c.txn
	c.open, c.txn = false, nil
	for _, ch := range txn {
		if c.s.refused != nil && c.s.refused(ch.id, ch.body) {
			return c.status(h, 22, ch.id, c.s.refusal)
		}
		if ch.body == nil && c.s.held[ch.id] == nil {
			return c.status(h, 2, ch.id, "no such object")
		}
	}
	var usage []byte
	for _, ch := range txn {
		if c.s.usage != nil {
			for _, row := range c.s.usage(ch.id, c.s.held[ch.id], ch.body) {
				usage = api.AppendRow(usage, &row)
			}
		}
		if ch.body == nil {
			delete(c.s.held, ch.id)
		} else {
			c.s.held[ch.id] = ch.body
		}
	}
	c.s.commits++
	c.s.changes += len(txn)
	if len(usage) > 0 && !c.reply(h, 0, usage) {
		return false
	}
	return c.status(h, 0, ID{}, "")
}

// list answers in replies of two digests each, so that clients are tested with several.
func (c *session) list(h api.Header, body []byte) bool {
	var l api.List
	if _, err := api.ReadRow(body, &l); err != nil || l.First > l.Last {
		return false
	}
	c.s.listCalls++
	var ids []ID
	for id := range c.s.held {
		if order := api.KeyOrder(id.Key); id.Kind == l.Kind && order >= l.First && order <= l.Last {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b ID) int { return cmp.Compare(api.KeyOrder(a.Key), api.KeyOrder(b.Key)) })
	flags := uint16(api.FLast)
	if limit := int(min(cmp.Or(l.Limit, api.ListMost), c.s.page)); len(ids) > limit {
		ids, flags = ids[:limit], flags|api.FMore
	}
	for len(ids) > 2 {
		if !c.reply(h, 0, c.digests(ids[:2])) {
			return false
		}
		ids = ids[2:]
	}
	return c.reply(h, flags, c.digests(ids))
}

func (c *session) digests(ids []ID) []byte {
	var out []api.Digest
	for _, id := range ids {
		d := api.Digest{Kind: id.Kind, Digest: api.BodyDigest(c.s.held[id])}
		copy(d.Key[:], id.Key)
		out = append(out, d)
	}
	return api.AppendRows(nil, out)
}
