// SPDX-License-Identifier: Apache-2.0

package api

import "fmt"

// layoutPart is the layout of a part: after each field the bytes of the struct so far, and the digest of its layout
// so far.
type layoutPart struct {
	name  string
	part  uint16
	steps []layoutStep
}

type layoutStep struct{ size, digest uint32 }

func (p *layoutPart) whole() layoutStep { return p.steps[len(p.steps)-1] }

func layoutOf(part uint16) *layoutPart {
	for i := range layoutParts {
		if layoutParts[i].part == part {
			return &layoutParts[i]
		}
	}
	return nil
}

// PartName is the name of the struct that is a part.
func PartName(part uint16) string {
	if p := layoutOf(part); p != nil {
		return p.name
	}
	return fmt.Sprintf("part %d", part)
}

// Layouts are our layouts, as HELLO carries them.
func Layouts() []Layout {
	list := make([]Layout, len(layoutParts))
	for i := range layoutParts {
		p := &layoutParts[i]
		list[i] = Layout{Version: Version, Part: p.part, Size: p.whole().size, Digest: p.whole().digest}
	}
	return list
}

// CommonVersion is the highest version that two ranges have in common; 0: none.
func CommonVersion(oldest, newest, peerOldest, peerNewest uint32) uint32 {
	if v := min(newest, peerNewest); v >= oldest && v >= peerOldest {
		return v
	}
	return 0
}

// CompareLayouts compares a peer's layouts with ours in one version. Of a struct that the peer knows more of, the
// peer compares.
func CompareLayouts(peer []Layout, version uint32) error {
	for _, l := range peer {
		p := layoutOf(l.Part)
		if uint32(l.Version) != version || p == nil || l.Size > p.whole().size {
			continue
		}
		known := false
		for _, s := range p.steps {
			known = known || s == layoutStep{l.Size, l.Digest}
		}
		if !known {
			return fmt.Errorf("struct %s is laid out otherwise on the other side, in the same contract version %d: "+
				"install both programs from releases",
				p.name, version)
		}
	}
	return nil
}
