// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"errors"
	"strings"

	"isthmus/controlplane/pfcp"
)

func decode(b []byte) (pfcp.Message, error) {
	_, m, err := pfcp.Decode(b)
	return m, err
}

// nodeName is a node id as the key of an association. Names are compared without case (RFC 4343).
func nodeName(id string) string { return strings.ToLower(strings.TrimSuffix(id, ".")) }

// refusalOf is what a message is refused with; an error without a cause is "request rejected".
func refusalOf(err error) *pfcp.Error {
	var e *pfcp.Error
	if errors.As(err, &e) {
		return e
	}
	return &pfcp.Error{Cause: pfcp.CauseRejected, Text: err.Error()}
}
