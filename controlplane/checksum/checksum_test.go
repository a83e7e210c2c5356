// SPDX-License-Identifier: Apache-2.0

package checksum

import (
	"testing"

	"isthmus/controlplane/testkit"
)

// The example of RFC 1071 section 3, its parts in turn, an odd octet, and what carries twice.
func TestSum(t *testing.T) {
	b := []byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}
	testkit.Equal(t, Of(b, 0), uint16(^uint16(0xddf2)), "the example")
	testkit.Equal(t, Of(b[4:], Sum(b[:4], 0)), Of(b, 0), "in parts")
	testkit.Equal(t, Of(append(b, 0x22, 0x0d), 0), uint16(0), "with its checksum")
	testkit.Equal(t, Of([]byte{0x12}, 0), Of([]byte{0x12, 0}, 0), "an odd octet")
	testkit.Equal(t, Of([]byte{0xff, 0xff}, 0xffff0000), uint16(0), "carried twice")
}
