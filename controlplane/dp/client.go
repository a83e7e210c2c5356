// SPDX-License-Identifier: Apache-2.0

package dp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"isthmus/api"
)

// Timeouts of one request. A commit may build large tables; everything else is quick.
const (
	requestTimeout = 10 * time.Second
	commitTimeout  = 60 * time.Second
)

// maxReplyBytes bounds all replies to one request together.
const maxReplyBytes = 512 << 20

// Change is one step of a transaction. A nil Body deletes the object.
type Change struct {
	Kind uint32
	Key  string
	Body []byte
}

// RefusedError is the data plane's refusal of a transaction or command. Nothing was changed.
type RefusedError struct {
	Code uint32 // errno
	Kind uint32 // 0: no single object is to blame
	Key  string
	Text string // for people

	RuleKind, Rule uint32 // api.RulePDR and on, and its id: the rule of a session that is to blame; 0: none
}

func (e *RefusedError) Error() string {
	what := e.Text
	if what == "" {
		what = fmt.Sprintf("error %d", e.Code)
	}
	if e.Kind == 0 || names(what, e.Key) {
		return "refused by the data plane: " + what
	}
	return fmt.Sprintf("refused by the data plane: %s %q: %s", KindName(e.Kind), e.Key, what)
}

// names: a text has the key as a separate word.
func names(text, key string) bool {
	part := func(b byte) bool {
		return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '-' || b == '_'
	}
	for at := 0; key != ""; at++ {
		i := strings.Index(text[at:], key)
		if i < 0 {
			break
		}
		at += i
		end := at + len(key)
		if (at == 0 || !part(text[at-1])) && (end == len(text) || !part(text[end])) {
			return true
		}
	}
	return false
}

// ErrClosed is returned for requests on a connection that has ended.
var ErrClosed = errors.New("connection to the data plane has ended")

// Client is one connection. All methods may be called from any goroutine; requests take turns.
type Client struct {
	conn    net.Conn
	hello   api.Hello
	version uint32        // of the contract, that both sides speak
	reply   chan frame    // written by the reader goroutine
	quit    chan struct{} // closed by Close: the reader stops
	once    sync.Once
	done    chan struct{}
	err     error // why done was closed; read after done

	mine     chan struct{} // of one place: its holder owns the fields below, one request at a time
	w        *bufio.Writer
	sequence uint32
}

// Dial connects and checks that both ends understand each other.
func Dial(ctx context.Context, path string) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	c, err := NewClient(ctx, conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// NewClient sends the greeting over an open connection, which it then owns.
func NewClient(ctx context.Context, conn net.Conn) (*Client, error) {
	c := &Client{
		conn:  conn,
		reply: make(chan frame, 16),
		quit:  make(chan struct{}),
		done:  make(chan struct{}),
		mine:  make(chan struct{}, 1),
		w:     bufio.NewWriterSize(conn, 256<<10),
	}
	go c.read()
	if err := c.agree(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// agree exchanges what both sides speak. The data plane compares too, the structs of which it knows more.
func (c *Client) agree(ctx context.Context) error {
	mine := api.Hello{Version: api.Version, Oldest: api.VersionOldest, PID: uint32(os.Getpid())}
	body, err := c.request(ctx, api.TypeHello, api.AppendRows(api.Body(&mine), api.Layouts()))
	var refused *RefusedError
	if errors.As(err, &refused) {
		return errors.New(refused.Text)
	}
	if err != nil {
		return err
	}
	layouts, err := api.ReadRow(body, &c.hello)
	if err != nil {
		return fmt.Errorf("%w (it does not speak contract version %d or later: install both programs from one "+
			"release): %v", ErrProtocol,
			uint32(api.VersionOldest), err)
	}
	peer, err := rows[api.Layout](layouts)
	if err != nil {
		return err
	}
	c.version = api.CommonVersion(api.VersionOldest, api.Version, c.hello.Oldest, c.hello.Version)
	if c.version == 0 {
		return fmt.Errorf("the data plane speaks contract versions %d to %d and the control plane %d to %d: install "+
			"both programs from releases that have one in common",
			c.hello.Oldest, c.hello.Version, uint32(api.VersionOldest), uint32(api.Version))
	}
	return api.CompareLayouts(peer, c.version)
}

// Hello returns the data plane's greeting.
func (c *Client) Hello() api.Hello { return c.hello }

// Done is closed when the connection has ended, for any reason.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close ends the connection.
func (c *Client) Close() error {
	c.once.Do(func() { close(c.quit) })
	return c.conn.Close()
}

func (c *Client) read() {
	defer close(c.done)
	defer c.conn.Close()
	r := bufio.NewReaderSize(c.conn, 256<<10)
	for {
		f, err := readFrame(r)
		if err != nil {
			if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
				err = ErrClosed
			}
			c.err = err
			return
		}
		select {
		case c.reply <- f:
		case <-c.quit:
			c.err = ErrClosed
			return
		}
	}
}

// send writes one message; the caller has its turn and flushes.
func (c *Client) send(typ uint16, parts ...[]byte) (uint32, error) {
	c.sequence++
	err := writeMessage(c.w, typ, c.sequence, parts...)
	if err != nil && !errors.Is(err, errTooLong) { // of which nothing was written
		err = c.broken(err)
	}
	return c.sequence, err
}

// broken ends a connection whose stream is in an unknown state.
func (c *Client) broken(err error) error {
	c.Close()
	return err
}

// next waits for the next reply.
func (c *Client) next(ctx context.Context) (frame, error) {
	if ctx.Err() != nil { // also when replies come without end
		return frame{}, c.broken(fmt.Errorf("no last answer from the data plane: %w", ctx.Err()))
	}
	select {
	case f := <-c.reply:
		return f, nil
	default:
	}
	select {
	case f := <-c.reply:
		return f, nil
	case <-c.done:
		return frame{}, c.err
	case <-ctx.Done():
		return frame{}, c.broken(fmt.Errorf("no answer from the data plane: %w", ctx.Err()))
	}
}

// collect reads replies to requests first..last until the last one is answered and returns the bodies joined. An error
// reply to an earlier request of the same transaction (a PUT) is remembered and returned.
func (c *Client) collect(ctx context.Context, typ uint16, first, last uint32) (body []byte, flags uint16, err error) {
	flags, err = c.answers(ctx, typ, first, last, func(part []byte) error {
		if len(body)+len(part) > maxReplyBytes {
			return fmt.Errorf("%w: more than %d bytes in answer to one request", ErrProtocol, maxReplyBytes)
		}
		body = append(body, part...)
		return nil
	})
	return body, flags, err
}

// answers is collect that gives each body to take, whose error ends the connection: more answers are on their way.
func (c *Client) answers(ctx context.Context, typ uint16, first, last uint32, take func(body []byte) error) (uint16,
	error) {
	var refused error
	for {
		f, err := c.next(ctx)
		if err != nil {
			return 0, err
		}
		if f.Sequence-first > last-first {
			return 0, c.broken(fmt.Errorf("%w: reply to request %d, expected %d", ErrProtocol, f.Sequence,
				last))
		}
		if f.Flags&api.FError != 0 {
			if err := refusal(f.body); err != nil && refused == nil {
				refused = err
			}
		} else if f.Sequence == last {
			if f.Type != typ {
				return 0, c.broken(fmt.Errorf("%w: reply of type %d to a request of type %d", ErrProtocol,
					f.Type, typ))
			}
			if err := take(f.body); err != nil {
				return 0, c.broken(err)
			}
		}
		if f.Sequence == last && f.last() {
			return f.Flags, refused
		}
	}
}

// refusal turns an api_status into an error, nil for code 0.
func refusal(body []byte) error {
	var s api.Status
	if _, err := api.ReadRow(body, &s); err != nil {
		return fmt.Errorf("%w (it may be of a release before contract version %d: install both programs from one): %v",
			ErrProtocol,
			uint32(api.VersionOldest), err)
	}
	if s.Code == 0 {
		return nil
	}
	return &RefusedError{Code: s.Code, Kind: s.Kind, Key: api.CString(s.Key[:]), Text: api.CString(s.Text[:]),
		RuleKind: s.RuleKind, Rule: s.Rule}
}

// request sends one message and returns the joined bodies of its replies.
func (c *Client) request(ctx context.Context, typ uint16, body []byte) ([]byte, error) {
	body, _, err := c.exchange(ctx, typ, body)
	return body, err
}

// turn waits for the connection, which is the caller's until done. A caller that gives up before sends nothing. Later
// ones do not stop the request: a half-read stream would break the connection for others, so only the time limit ends
// it. The first request, before there are others, can be stopped.
func (c *Client) turn(ctx context.Context, limit time.Duration) (own context.Context, done func(), err error) {
	const unasked = "the data plane was not asked: %w"
	select {
	case c.mine <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf(unasked, ctx.Err())
	}
	if err := ctx.Err(); err != nil { // both were true
		<-c.mine
		return nil, nil, fmt.Errorf(unasked, err)
	}
	if c.version != 0 {
		ctx = context.WithoutCancel(ctx)
	}
	own, cancel := context.WithTimeout(ctx, limit)
	c.conn.SetWriteDeadline(time.Now().Add(limit))
	return own, func() { cancel(); <-c.mine }, nil
}

// exchange is request that returns the flags of the last reply, too.
func (c *Client) exchange(ctx context.Context, typ uint16, body []byte) (answer []byte, flags uint16, err error) {
	err = c.ask(ctx, typ, body, func(own context.Context, sequence uint32) error {
		answer, flags, err = c.collect(own, typ, sequence, sequence)
		return err
	})
	return answer, flags, err
}

// ask sends one message and has its replies read while the connection is ours.
func (c *Client) ask(ctx context.Context, typ uint16, body []byte,
	read func(own context.Context, sequence uint32) error) error {
	own, done, err := c.turn(ctx, requestTimeout)
	if err != nil {
		return err
	}
	defer done()
	sequence, err := c.send(typ, body)
	if err != nil {
		return err
	}
	if err := c.w.Flush(); err != nil {
		return c.broken(err)
	}
	return read(own, sequence)
}

// Apply carries out all changes as one transaction, or none of them.
func (c *Client) Apply(ctx context.Context, changes []Change) error {
	_, err := c.Commit(ctx, changes)
	return err
}

// Rehearse sends all changes as one transaction that it then has forgotten: the data plane looks at their form alone.
func (c *Client) Rehearse(ctx context.Context, changes []Change) error {
	_, err := c.transact(ctx, changes, api.TypeAbort)
	return err
}

// Commit is Apply that returns the usage reports of the changes: final ones of deleted URRs, and requested ones.
func (c *Client) Commit(ctx context.Context, changes []Change) ([]api.Usage, error) {
	body, err := c.transact(ctx, changes, api.TypeCommit)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	return commitReply(body)
}

// transact sends a transaction and the request that ends it, and returns the answer to that.
func (c *Client) transact(ctx context.Context, changes []Change, end uint16) ([]byte, error) {
	if len(changes) > api.MaxChanges {
		return nil, fmt.Errorf("%d changes in one transaction, at most %d allowed", len(changes), api.MaxChanges)
	}
	if len(changes) == 0 {
		return nil, nil
	}
	for i := range changes { // before BEGIN, so that nothing stays open
		if err := checkChange(&changes[i]); err != nil {
			return nil, err
		}
	}
	ctx, done, err := c.turn(ctx, commitTimeout)
	if err != nil {
		return nil, err
	}
	defer done()
	first, err := c.send(api.TypeBegin)
	if err != nil {
		return nil, err
	}
	for i := range changes {
		if err := c.sendChange(&changes[i]); err != nil {
			return nil, err
		}
	}
	last, err := c.send(end)
	if err != nil {
		return nil, err
	}
	if err := c.w.Flush(); err != nil {
		return nil, c.broken(err)
	}
	body, _, err := c.collect(ctx, end, first, last)
	return body, err
}

func checkChange(ch *Change) error {
	if _, err := api.MakeKey(ch.Key); err != nil {
		return fmt.Errorf("%s: %w", KindName(ch.Kind), err)
	}
	if len(ch.Body) > api.MaxObject {
		return fmt.Errorf("%s %q: %d bytes, at most %d allowed", KindName(ch.Kind), ch.Key, len(ch.Body), api.MaxObject)
	}
	return nil
}

func (c *Client) sendChange(ch *Change) error {
	var head [api.SizeofPartHead + api.SizeofObjectHead]byte
	typ := uint16(api.TypePut)
	if ch.Body == nil {
		typ = api.TypeDelete
	}
	_, err := c.send(typ, appendObjectHead(head[:0], ch), ch.Body)
	return err
}

// KindName returns the word for an object kind: the name of its part.
func KindName(kind uint32) string {
	switch {
	case kind == api.KindSynth:
		return "stream"
	case kind == 0 || kind >= api.KindCount:
		return fmt.Sprintf("kind %d", kind)
	}
	return strings.TrimPrefix(api.PartName(uint16(kind)), "api_")
}
