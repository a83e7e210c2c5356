// SPDX-License-Identifier: Apache-2.0

package load

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/gaissmai/bart"

	"isthmus/controlplane/access"
	"isthmus/controlplane/mmsg"
	"isthmus/lab/dialer"
	"isthmus/lab/figure"
	"isthmus/lab/frames"
)

// AccessOptions are those of a run of sign-ins.
type AccessOptions struct {
	Interface   string // towards the access port
	DHCP        bool   // not PPPoE
	IPv4, IPv6  bool   // what each must get; IPv6: a /64 with PPPoE, an address and a delegated prefix with DHCP
	Subscribers int
	Rate        float64       // sign-ins per second
	Hold        time.Duration // all on line
	Flaps       float64       // sessions per second that vanish and sign in again, while held
	PowerCut    bool          // then all vanish at once and sign in again, as fast as Rate
	Ping        netip.Addr    // each on-line subscriber asks this address once; invalid: none
	DNS         []netip.Addr  // name servers required, those of its families; none: any
	STag        uint16        // of the first 4,000; 0: untagged
	User        string        // fmt with the number, from 1
	Password    string        // the same
	Methods     []access.Method
	Patience    time.Duration // until a sign-in has failed
	Progress    func(what string, share float64)
}

// AccessResult of a run.
type AccessResult struct {
	Interface   string             `json:"interface"`
	Protocol    string             `json:"protocol"`
	Subscribers int                `json:"subscribers"`
	Offered     float64            `json:"offered_per_s"`
	Achieved    float64            `json:"achieved_per_s"` // of the first sign-ins: all of them in this time
	Online      int                `json:"online"`         // most at a time
	SignIns     uint64             `json:"sign_ins"`
	Flaps       uint64             `json:"flaps"`
	Ended       uint64             `json:"ended"` // by the gateway
	PowerCut    figure.Number      `json:"power_cut_seconds"`
	Latency     map[string]Latency `json:"latency"` // sign_in: first frame to addresses; ping; keep_alive
	Answered    uint64             `json:"answered"`
	Unanswered  uint64             `json:"unanswered"`
	KeptAlive   uint64             `json:"kept_alive"` // LCP echo, a renewal
	Lapsed      uint64             `json:"lapsed"`     // keep-alives without an answer
	Sent        uint64             `json:"sent_frames"`
	Received    uint64             `json:"received_frames"`
	Wrong       map[string]uint64  `json:"wrong"`
}

// Verdict is nil when all subscribers got what they must have.
func (r *AccessResult) Verdict() error {
	var errs []error
	for what, n := range r.Wrong {
		errs = append(errs, fmt.Errorf("%s (%d)", what, n))
	}
	if r.Online < r.Subscribers {
		errs = append(errs, fmt.Errorf("%d of %d subscribers came on line", r.Online, r.Subscribers))
	}
	if r.Unanswered > 0 {
		errs = append(errs, fmt.Errorf("%d pings were not answered", r.Unanswered))
	}
	if r.Lapsed > 0 {
		errs = append(errs, fmt.Errorf("%d keep-alives were not answered", r.Lapsed))
	}
	return errors.Join(errs...)
}

// protocol is one subscriber's end, a modem or a DHCP client.
type protocol interface {
	Dial()
	Receive(etherType uint16, payload []byte)
	Expire()
	Vanish() // a power cut
	HangUp()
}

// home is one subscriber.
type home struct {
	protocol
	began    time.Duration
	dialled  time.Duration // last
	wakes    time.Duration // 0: not
	dials    bool          // since Dial, until it ends
	online   bool
	had      access.Families
	ipv4     netip.Addr
	ipv6     []netip.Prefix
	asked    time.Duration // ping, then keep-alive
	answered bool
	kept     bool    // alive, once
	peer     [6]byte // gateway
}

// crowd is all of them: one goroutine, one socket.
type crowd struct {
	opt    AccessOptions
	file   *os.File
	raw    syscall.RawConn
	began  time.Time
	homes  []home
	index  map[protocol]uint32
	timers alarms
	in     *mmsg.Batch
	inRoom [batch][frameRoom]byte
	out    *mmsg.Batch
	queued int
	room   [batch][]byte
	online int
	owners bart.Table[uint32] // addresses in use
	result AccessResult
	signin histogram
	pings  histogram
	keeps  histogram
	random *rand.Rand
	closed bool
}

// DefaultPatience of a run.
const DefaultPatience = 30 * time.Second

const (
	batch     = 128
	frameRoom = 2048
	perSTag   = 4000
)

func (opt *AccessOptions) check() error {
	switch {
	case opt.Subscribers < 1 || opt.Subscribers > 1<<20:
		return fmt.Errorf("%d subscribers are not between 1 and %d", opt.Subscribers, 1<<20)
	case opt.Rate <= 0 || opt.Rate > 1e6:
		return fmt.Errorf("a rate of %g per second is not between 0 and 1,000,000", opt.Rate)
	case !opt.IPv4 && !opt.IPv6:
		return errors.New("neither IPv4 nor IPv6 is asked for")
	case opt.STag > 4094 || opt.STag == 0 && opt.Subscribers > 1<<16 ||
		int(opt.STag)+(opt.Subscribers-1)/perSTag > 4094:
		return fmt.Errorf("%d subscribers, %d an S-tag from %d on: the last S-tag is above 4094", opt.Subscribers,
			perSTag, opt.STag)
	case opt.Hold < 0 || opt.Flaps < 0 || opt.Patience <= 0:
		return errors.New("hold, flaps and patience may not be negative")
	}
	return nil
}

// RunAccess signs them in. It returns a result if any subscriber tried, also beside an error.
func RunAccess(ctx context.Context, opt AccessOptions) (*AccessResult, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	file, err := frames.Open(opt.Interface)
	if err != nil {
		return nil, fmt.Errorf("--interface: %w", err)
	}
	defer file.Close()
	c, err := newCrowd(opt, file)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err = c.phases(ctx)
	c.hangUp(ctx)
	return c.finish(), err
}

func newCrowd(opt AccessOptions, file *os.File) (*crowd, error) {
	c := &crowd{opt: opt, file: file, began: time.Now(), homes: make([]home, opt.Subscribers), in: mmsg.New(batch),
		out:   mmsg.New(batch),
		index: make(map[protocol]uint32, opt.Subscribers), random: rand.New(rand.NewPCG(1, 2))}
	for i := range c.room {
		c.room[i] = make([]byte, 0, frameRoom)
		c.in.SetBuffer(i, c.inRoom[i][:])
	}
	c.result = AccessResult{Interface: opt.Interface, Subscribers: opt.Subscribers, Offered: opt.Rate,
		Protocol: map[bool]string{true: "DHCP", false: "PPPoE"}[opt.DHCP], Wrong: map[string]uint64{}}
	var err error
	c.raw, err = file.SyscallConn()
	for i := range c.homes {
		h := &c.homes[i]
		h.protocol = c.newProtocol(i)
		h.peer = [6]byte{255, 255, 255, 255, 255, 255}
		c.index[h.protocol] = uint32(i)
	}
	return c, err
}

func (c *crowd) newProtocol(i int) protocol {
	if c.opt.DHCP {
		return &dhcpClient{crowd: c, number: uint32(i)}
	}
	name := c.opt.User
	password := c.opt.Password
	if hasVerb(name) {
		name = fmt.Sprintf(name, i+1)
	}
	if hasVerb(password) {
		password = fmt.Sprintf(password, i+1)
	}
	config := dialer.NewConfig(name, password, c.opt.Methods...)
	config.PPP.Families = access.Families{V4: c.opt.IPv4, V6: c.opt.IPv6}
	config.PPP.Now, config.PPP.Random = c.Now, c.random.Uint64
	config.Repeat = time.Second
	return dialer.New(c, config)
}

func hasVerb(s string) bool {
	for i := range len(s) {
		if s[i] == '%' {
			return true
		}
	}
	return false
}

// ---- phases ---------------------------------------------------------------------------------------------------------

func (c *crowd) phases(ctx context.Context) error {
	if err := c.signInAll(ctx, "sign-ins"); err != nil {
		return err
	}
	took := c.Now() - c.homes[0].began
	c.result.Achieved = float64(c.online) / took.Seconds()
	if err := c.hold(ctx); err != nil {
		return err
	}
	if !c.opt.PowerCut {
		return nil
	}
	for i := range c.homes {
		c.vanish(uint32(i))
	}
	began := c.Now()
	err := c.signInAll(ctx, "power is back")
	c.result.PowerCut = figure.Number((c.Now() - began).Seconds())
	if n := len(c.homes) - c.online; err == nil && n > 0 {
		c.result.Wrong[notBack] = uint64(n)
	}
	return err
}

const notBack = "a subscriber was not on line again after the power cut"

// signInAll begins sign-ins at the rate, and waits for the last, with patience behind it.
func (c *crowd) signInAll(ctx context.Context, what string) error {
	began, next, looked := c.Now(), 0, c.Now()
	for c.online < len(c.homes) {
		now := c.Now()
		if now-looked > time.Second {
			looked = now
			c.lookAfterSilent()
		}
		for due := min(int((now-began).Seconds()*c.opt.Rate)+1, len(c.homes)); next < due; next++ {
			c.dial(uint32(next))
		}
		all := time.Duration(float64(next) / c.opt.Rate * float64(time.Second))
		if next == len(c.homes) && now-began > all+c.opt.Patience {
			return nil // Verdict names the missing ones
		}
		if err := c.turn(ctx, time.Millisecond); err != nil {
			return err
		}
		c.progress(what, float64(c.online)/float64(len(c.homes)))
	}
	return nil
}

func (c *crowd) progress(what string, share float64) {
	if c.opt.Progress != nil {
		c.opt.Progress(what, share)
	}
}

func (c *crowd) hold(ctx context.Context) error {
	if err := c.pingAll(ctx); err != nil {
		return err
	}
	if err := c.keepAll(ctx); err != nil {
		return err
	}
	began, flaps := c.Now(), 0
	for c.Now()-began < c.opt.Hold {
		for ; flaps < int((c.Now()-began).Seconds()*c.opt.Flaps); flaps++ {
			i := uint32(c.random.IntN(len(c.homes)))
			c.vanish(i)
			c.dial(i)
			c.result.Flaps++
		}
		if err := c.turn(ctx, 10*time.Millisecond); err != nil {
			return err
		}
		c.progress("on line", min((c.Now()-began).Seconds()/max(c.opt.Hold.Seconds(), 1), 1))
	}
	return nil
}

const tries = 3 // a second apart: as with any ping, the first ones may wait for a neighbour

// pingAll has every subscriber ping an address.
func (c *crowd) pingAll(ctx context.Context) error {
	if !c.opt.Ping.IsValid() {
		return nil
	}
	err := c.askAll(ctx, &c.pings, func(i uint32) {
		if !c.homes[i].answered {
			c.ping(i)
		}
	})
	c.result.Answered = c.pings.count
	c.result.Unanswered = uint64(len(c.homes)) - min(c.pings.count, uint64(len(c.homes)))
	return err
}

// askAll has every subscriber ask, some each millisecond, until all are answered.
func (c *crowd) askAll(ctx context.Context, answers *histogram, ask func(i uint32)) error {
	for range tries {
		for i := range c.homes {
			ask(uint32(i))
			if i%32 == 31 {
				if err := c.turn(ctx, time.Millisecond); err != nil {
					return err
				}
			}
		}
		for began := c.Now(); answers.count < uint64(c.online) && c.Now()-began < time.Second; {
			if err := c.turn(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *crowd) dial(i uint32) {
	c.homes[i].began = c.Now()
	c.dialAgain(i)
}

func (c *crowd) dialAgain(i uint32) {
	h := &c.homes[i]
	h.dialled, h.dials = c.Now(), true
	h.Dial()
}

// lookAfterSilent dials again for failed dials: a client that waits for the gateway's turn has no timer, and the frame
// may be lost. A real subscriber's router finds out by LCP echo.
func (c *crowd) lookAfterSilent() {
	for i := range c.homes {
		if h := &c.homes[i]; !h.online && h.dials && c.Now()-h.dialled > silentFor {
			c.vanish(uint32(i))
			c.dialAgain(uint32(i))
		}
	}
}

const silentFor = 20 * time.Second

func (c *crowd) vanish(i uint32) {
	c.offline(i)
	c.homes[i].dials = false
	c.homes[i].Vanish()
}

func (c *crowd) offline(i uint32) {
	h := &c.homes[i]
	if h.online {
		c.online--
	}
	for _, p := range append(h.ipv6, single(h.ipv4)) {
		if owner, taken := c.owners.Get(p); taken && owner == i {
			c.owners.Delete(p)
		}
	}
	h.online, h.had, h.ipv4, h.ipv6 = false, access.Families{}, netip.Addr{}, nil
}

func single(a netip.Addr) netip.Prefix {
	if !a.IsValid() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(a, a.BitLen())
}

// hangUp ends all sessions, at the rate, so that the gateway gets each end; at once when ctx is done.
func (c *crowd) hangUp(ctx context.Context) {
	c.closed = true
	c.file.SetReadDeadline(time.Time{})
	began := c.Now()
	for i := range c.homes {
		if h := &c.homes[i]; h.online {
			h.dials = false
			h.HangUp()
		}
		for i%32 == 31 && ctx.Err() == nil && float64(i) > (c.Now()-began).Seconds()*c.opt.Rate {
			c.turn(context.WithoutCancel(ctx), time.Millisecond)
		}
	}
	c.turn(context.Background(), 50*time.Millisecond)
}

func (c *crowd) finish() *AccessResult {
	c.result.SignIns = c.signin.count
	c.result.Latency = map[string]Latency{"sign_in": c.signin.latency(), "ping": c.pings.latency(),
		"keep_alive": c.keeps.latency()}
	return &c.result
}

// ---- what a subscriber got ------------------------------------------------------------------------------------------

func (c *crowd) wrong(what string) { c.result.Wrong[what]++ }

// got notes addresses, each of one subscriber alone; a subscriber is on line when it has all that it must have.
func (c *crowd) got(i uint32, v4 netip.Addr, v6 netip.Prefix) {
	h := &c.homes[i]
	for _, p := range []netip.Prefix{single(v4), v6} {
		if !p.IsValid() {
			continue
		}
		owner, taken := c.owners.Get(p)
		if taken && owner == i {
			continue
		}
		if taken || c.owners.OverlapsPrefix(p) {
			c.wrong("an address was given to two subscribers")
		}
		c.owners.Insert(p, i)
	}
	if v4.IsValid() {
		if h.had.V4 && h.ipv4 != v4 {
			c.wrong("a subscriber who is on line got another IPv4 address")
		}
		h.ipv4, h.had.V4 = v4, true
	}
	if v6.IsValid() && !slices.Contains(h.ipv6, v6) {
		if h.had.V6 {
			c.wrong("a subscriber who is on line got another IPv6 prefix")
		}
		h.ipv6 = append(h.ipv6, v6)
		h.had.V6 = !c.opt.DHCP || len(h.ipv6) == 2
	}
	if h.online || c.opt.IPv4 && !h.had.V4 || c.opt.IPv6 && !h.had.V6 {
		return
	}
	h.online = true
	c.online++
	c.result.Online = max(c.result.Online, c.online)
	c.signin.add(c.Now() - h.began)
}

// ended: by the gateway, or given up; it dials again.
func (c *crowd) ended(i uint32, why string) {
	c.homes[i].dials = false
	if c.closed {
		return
	}
	if c.homes[i].online {
		c.result.Ended++
		c.wrong("a session ended: " + why)
	}
	c.offline(i)
	c.homes[i].wakes = c.Now() + time.Second
	heap.Push(&c.timers, alarm{c.homes[i].wakes, i})
}
