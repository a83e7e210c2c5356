// SPDX-License-Identifier: Apache-2.0

package api

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// layoutPart is the layout of a part: after each field the bytes of the struct so far, and the digest of its layout
// so far.
type layoutPart struct {
	name  string
	part  uint16
	steps []layoutStep
}

type layoutStep struct{ size, digest uint32 }

func (p *layoutPart) whole() layoutStep { return p.steps[len(p.steps)-1] }

// PART(name, number, STEP(size, digest)...), which layout.h reads, too.
//
//go:embed layout.inc
var layoutText string

var stepSyntax = regexp.MustCompile(`STEP\((\d+), (0x\w+)\)`)

var layoutParts = sync.OnceValue(func() (list []layoutPart) {
	number := func(text string, bits int) uint64 {
		n, _ := strconv.ParseUint(text, 0, bits) // check.sh writes numbers
		return n
	}
	for _, text := range strings.Split(layoutText, "\nPART(")[1:] {
		word := strings.SplitN(text, ", ", 2)
		before, steps, _ := strings.Cut(word[1], ",")
		p := layoutPart{name: word[0], part: uint16(number(before, 16))}
		for _, s := range stepSyntax.FindAllStringSubmatch(steps, -1) {
			p.steps = append(p.steps, layoutStep{uint32(number(s[1], 32)), uint32(number(s[2], 32))})
		}
		list = append(list, p)
	}
	return list
})

func layoutOf(part uint16) *layoutPart {
	list := layoutParts()
	if i := slices.IndexFunc(list, func(p layoutPart) bool { return p.part == part }); i >= 0 {
		return &list[i]
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
	var list []Layout
	for _, p := range layoutParts() {
		list = append(list, Layout{Version: Version, Part: p.part, Size: p.whole().size, Digest: p.whole().digest})
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
		if !slices.Contains(p.steps, layoutStep{l.Size, l.Digest}) {
			return fmt.Errorf("struct %s is laid out otherwise on the other side, in the same contract version %d: "+
				"install both programs from releases",
				p.name, version)
		}
	}
	return nil
}
