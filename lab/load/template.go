// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"

	"isthmus/controlplane/pfcp"
	"isthmus/lab/smf"
)

// values are what differs between the sessions of a run.
type values struct {
	seid uint64  // in the header: the user plane's
	cp   uint64  // our SEID, in the CP F-SEID
	ue   [4]byte // UE address, in both PDRs
	teid uint32  // of the emulated access side, in the downlink FAR
}

// marks stand in a template where a session's values go. They occur nowhere else by chance, or newTemplate refuses.
var marks = values{cp: 0x8c7b6a594837261f, ue: [4]byte{198, 19, 171, 205}, teid: 0x9badcafe}

// template is an encoded request with the places of what differs: encoding a request costs ten times as much as
// patching one.
type template struct {
	bytes        []byte
	cp, teid, ue []int
}

func newTemplate(m pfcp.Message) (*template, error) {
	b, err := pfcp.Encode(pfcp.Header{Type: m.MessageType(), HasSEID: true}, m)
	if err != nil {
		return nil, err
	}
	t := &template{bytes: b}
	t.cp = places(b, binary.BigEndian.AppendUint64(nil, marks.cp))
	t.teid = places(b, binary.BigEndian.AppendUint32(nil, marks.teid))
	t.ue = places(b, marks.ue[:])
	return t, nil
}

// has fails unless the values stand in the template as often as they should.
func (t *template) has(cp, teid, ue int) error {
	if len(t.cp) != cp || len(t.teid) != teid || len(t.ue) != ue {
		return errors.New("the request is not encoded as it was expected")
	}
	return nil
}

func places(b, mark []byte) []int {
	var list []int
	for at := 0; ; {
		i := bytes.Index(b[at:], mark)
		if i < 0 {
			return list
		}
		list = append(list, at+i)
		at += i + len(mark)
	}
}

// Places in the header of a message with an SEID (TS 29.244 §7.2.2.3).
const (
	atSEID     = 4
	atSequence = 12
	headerSize = 16
)

// fill appends the request with these values to an empty buffer.
func (t *template) fill(to []byte, sequence uint32, v *values) []byte {
	b := append(to[:0], t.bytes...)
	binary.BigEndian.PutUint64(b[atSEID:], v.seid)
	binary.BigEndian.PutUint32(b[atSequence:], sequence<<8)
	for _, i := range t.cp {
		binary.BigEndian.PutUint64(b[i:], v.cp)
	}
	for _, i := range t.teid {
		binary.BigEndian.PutUint32(b[i:], v.teid)
	}
	for _, i := range t.ue {
		copy(b[i:], v.ue[:])
	}
	return b
}

// templates are the three requests of a session: 2 PDRs, 2 FARs, 1 QER and 1 URR; a modification moves the downlink
// FAR.
type templates [kinds]*template

func newTemplates(opt *Options, local netip.Addr) (*templates, error) {
	peer := pfcp.FTEID{TEID: marks.teid, IPv4: opt.AccessPeer}
	anchor := smf.Anchor{
		Access: opt.Access, Core: opt.Core, UE: smf.UE{IPv4: netip.AddrFrom4(marks.ue)}, Peer: &peer,
		Measure: smf.Measure{QFI: 9, MBRUp: 1 << 20, MBRDown: 1 << 20, CountsForCharging: true},
	}
	establish := anchor.Request()
	establish.Node, establish.CP = opt.Node, pfcp.FSEID{SEID: marks.cp}
	establish.APN = opt.Core
	if local.Is4() {
		establish.CP.IPv4 = local
	} else {
		establish.CP.IPv6 = local
	}
	modify := &pfcp.SessionModificationRequest{
		UpdateFAR: []pfcp.UpdateFAR{smf.Redirect(smf.Downlink, pfcp.Access, opt.Access, peer, false)},
	}
	var t templates
	for kind, m := range map[kind]pfcp.Message{
		establishment: establish, modification: modify, deletion: &pfcp.SessionDeletionRequest{},
	} {
		var err error
		if t[kind], err = newTemplate(m); err != nil {
			return nil, err
		}
	}
	return &t, errors.Join(t[establishment].has(1, 1, 2), t[modification].has(0, 1, 0), t[deletion].has(0, 0, 0))
}
