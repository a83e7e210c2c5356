// SPDX-License-Identifier: Apache-2.0

package dp

import (
	"fmt"

	"isthmus/api"
)

// commitReply splits the joined replies to a COMMIT: usage reports, then the status.
func commitReply(body []byte) ([]api.Usage, error) {
	if len(body) < api.SizeofStatus || (len(body)-api.SizeofStatus)%api.SizeofUsage != 0 {
		return nil, fmt.Errorf("%w: %d bytes in answer to a commit", ErrProtocol, len(body))
	}
	end := len(body) - api.SizeofStatus
	usage, err := rows[api.Usage](body[:end])
	if err != nil {
		return nil, err
	}
	return usage, refusal(body[end:])
}
