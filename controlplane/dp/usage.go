// SPDX-License-Identifier: Apache-2.0

package dp

import (
	"fmt"

	"isthmus/api"
)

// commitReply splits the joined replies to a COMMIT: usage reports in any number of parts, then the status.
func commitReply(body []byte) ([]api.Usage, error) {
	var usage []api.Usage
	for {
		more, rest, err := api.TakeRows[api.Usage](body)
		if err != nil {
			return nil, fmt.Errorf("%w: %v", ErrProtocol, err)
		}
		if len(rest) == len(body) {
			return usage, refusal(body)
		}
		usage, body = append(usage, more...), rest
	}
}
