// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp"
)

// Query is what a client asks for; what is not said is not asked.
type Query struct {
	Session      string   `json:"session,omitempty"`    // by its name
	Subscriber   string   `json:"subscriber,omitempty"` // the agent makes a session of it
	UE           string   `json:"ue,omitempty"`         // address or prefix
	TEID         uint32   `json:"teid,omitempty"`
	Port         string   `json:"port,omitempty"`
	Filter       string   `json:"filter,omitempty"` // pcap-filter(7)
	Drop         string   `json:"drop,omitempty"`   // reason; "any": every one
	UntilDrop    bool     `json:"until_drop,omitempty"`
	Count        uint32   `json:"count,omitempty"` // packets
	Sample       uint32   `json:"sample,omitempty"`
	Rate         uint32   `json:"rate,omitempty"`
	Seconds      uint32   `json:"seconds"`
	Snap         uint32   `json:"snap,omitempty"`
	Stages       []string `json:"stages,omitempty"` // of frames: received, inside, sent
	Hypothetical []byte   `json:"hypothetical,omitempty"`
	Edges        bool     `json:"edges,omitempty"` // follow none, count packets from node to node
}

var stageFlags = map[string]uint32{
	"received": api.TraceReceived, "inside": api.TraceInside, "sent": api.TraceSent,
}

const (
	filterTimeout = 5 * time.Second
	filterOutput  = 1 << 20
)

// Order makes the data plane's order of a query. program is isthmus-dp, which compiles filters.
func (q *Query) Order(ctx context.Context, c *dp.Client, program string) (*dp.TraceOrder, error) {
	o := &dp.TraceOrder{Hypothetical: q.Hypothetical}
	o.Want = api.Trace{Flags: api.TraceSteps, Seconds: q.Seconds, Rate: q.Rate, Sample: q.Sample, Snap: q.Snap}
	if err := api.PutCString(o.Want.Port[:], q.Port); err != nil {
		return nil, fmt.Errorf("port: %w", err)
	}
	for _, s := range q.Stages {
		flag, ok := stageFlags[s]
		if !ok {
			return nil, fmt.Errorf("stage %q is none of received, inside, sent", s)
		}
		o.Want.Flags |= flag
	}
	switch {
	case q.Edges:
		o.Want.Flags = api.TraceEdges
		return o, q.chooses("edges are counted of all packets")
	case q.Hypothetical != nil:
		o.Want.Flags |= api.TraceHypothetical
		return o, q.chooses("a hypothetical packet is the only one")
	case q.Drop != "":
		o.Want.Flags |= api.TraceLate
	case !q.UntilDrop:
		o.Want.Packets = q.Count
	}
	if err := q.knownReason(ctx, c); err != nil {
		return nil, err
	}
	if err := q.keys(ctx, c, o); err != nil {
		return nil, err
	}
	if q.Filter == "" {
		return o, nil
	}
	var err error
	o.FrameCode, o.PacketCode, err = compile(ctx, program, q.Filter)
	return o, err
}

// chooses refuses selectors where nothing is chosen.
func (q *Query) chooses(why string) error {
	if q.Session != "" || q.Subscriber != "" || q.UE != "" || q.TEID != 0 ||
		q.Port != "" && q.Edges || q.Filter != "" || q.Drop != "" || q.UntilDrop ||
		q.Count != 0 || q.Sample != 0 || q.Rate != 0 && q.Edges {
		return fmt.Errorf("%s: choose none", why)
	}
	return nil
}

// knownReason refuses a reason that nothing is dropped for.
func (q *Query) knownReason(ctx context.Context, c *dp.Client) error {
	if q.Drop == "" || q.Drop == "any" {
		return nil
	}
	reasons, err := dp.Table[api.DropRow](ctx, c, api.TableDrop, "", 0)
	if err != nil {
		return err
	}
	for i := range reasons {
		if api.CString(reasons[i].Name[:]) == q.Drop {
			return nil
		}
	}
	return fmt.Errorf("nothing is dropped for a reason %q; isthmus show drop has all", q.Drop)
}

func (q *Query) keys(ctx context.Context, c *dp.Client, o *dp.TraceOrder) error {
	if q.UE != "" {
		a, err := prefix(q.UE)
		if err != nil {
			return err
		}
		o.Keys = append(o.Keys, api.TraceKey{By: api.TraceByAddress, Address: a})
	}
	if q.TEID != 0 {
		o.Keys = append(o.Keys, api.TraceKey{By: api.TraceByTEID, TEID: q.TEID})
	}
	if q.Session == "" {
		return nil
	}
	rows, err := dp.Table[api.SessionRow](ctx, c, api.TableSession, q.Session, 1)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("there is no session or subscriber %s; isthmus show session has all", q.Session)
	}
	rules, err := dp.Table[api.RuleRow](ctx, c, api.TableRule, q.Session, 0)
	if err != nil {
		return err
	}
	o.Keys = append(o.Keys, sessionKeys(&rows[0], rules)...)
	if len(o.Keys) > api.TraceKeys {
		return fmt.Errorf("session %s has more than %d F-TEIDs and addresses", q.Session, api.TraceKeys)
	}
	return nil
}

// sessionKeys is all by which packets are a session's: endpoint, F-TEIDs, addresses.
func sessionKeys(s *api.SessionRow, rules []api.RuleRow) []api.TraceKey {
	var keys []api.TraceKey
	if s.Encap != api.EncapNone {
		keys = append(keys, api.TraceKey{By: api.TraceByEndpoint, STag: s.STag, CTag: s.CTag,
			PPPoESession: s.PPPoESession, MAC: s.MAC})
	}
	teids := map[uint32]bool{}
	for _, r := range rules {
		if r.TEIDLocal != 0 && !teids[r.TEIDLocal] {
			teids[r.TEIDLocal] = true
			keys = append(keys, api.TraceKey{By: api.TraceByTEID, TEID: r.TEIDLocal})
		}
	}
	for _, a := range []api.Address{s.UEIP4, s.UEIP6} {
		if a.Family == 0 {
			continue
		}
		if a.Prefix == 0 {
			a.Prefix = map[uint8]uint8{4: 32, 6: 128}[a.Family]
		}
		keys = append(keys, api.TraceKey{By: api.TraceByAddress, Address: a})
	}
	return keys
}

func prefix(text string) (api.Address, error) {
	p, err := parsePrefix(text)
	if err != nil {
		return api.Address{}, err
	}
	return api.FromPrefix(p), nil
}

// parsePrefix reads a prefix, or an address as the prefix of itself.
func parsePrefix(text string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a prefix", text)
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// compile has an expression compiled by a process of its own, which has little memory and time.
func compile(ctx context.Context, program, text string) (frame, packet []api.TraceInstruction, err error) {
	ctx, cancel := context.WithTimeout(ctx, filterTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "filter", text)
	var out, why bytes.Buffer
	cmd.Stdout, cmd.Stderr = &limited{&out, filterOutput}, &limited{&why, 4096}
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		said := strings.TrimSpace(why.String())
		if errors.As(err, &exit) && exit.ExitCode() == 1 && said != "" {
			return nil, nil, fmt.Errorf("filter: %s", said)
		}
		return nil, nil, fmt.Errorf("the filter cannot be compiled: %w", err)
	}
	r := bufio.NewReader(&out)
	if frame, err = readProgram(r); err == nil {
		packet, err = readProgram(r)
	}
	if err == nil && len(frame)+len(packet) == 0 {
		err = errors.New("the filter is empty")
	}
	return frame, packet, err
}

// limited is a writer that refuses more than so many bytes.
type limited struct {
	b    *bytes.Buffer
	room int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > l.room {
		return 0, errors.New("more output than a filter has")
	}
	return l.b.Write(p)
}

func readProgram(r *bufio.Reader) ([]api.TraceInstruction, error) {
	var n int
	if _, err := fmt.Fscan(r, &n); err != nil || n < 0 {
		return nil, fmt.Errorf("no program from the filter's compiler: %w", err)
	}
	if n > api.TraceInstructions {
		return nil, fmt.Errorf("a filter of %d instructions, at most %d are possible", n, api.TraceInstructions)
	}
	code := make([]api.TraceInstruction, n)
	for i := range code {
		c := &code[i]
		if _, err := fmt.Fscan(r, &c.Code, &c.Jt, &c.Jf, &c.K); err != nil {
			return nil, fmt.Errorf("half a program from the filter's compiler: %w", err)
		}
	}
	return code, nil
}

// ParseMAC is net.ParseMAC of six bytes.
func ParseMAC(text string) (mac [6]byte, err error) {
	m, err := net.ParseMAC(text)
	if err != nil || len(m) != 6 {
		return mac, fmt.Errorf("%q is no MAC address", text)
	}
	copy(mac[:], m)
	return mac, nil
}
