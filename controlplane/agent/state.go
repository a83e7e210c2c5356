// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// writable makes the state folder and tries it: else a read-only folder is noticed at the first thing to keep,
// maybe days later. Without a folder there is nothing to try.
func writable(state string) error {
	if state == "" {
		return nil
	}
	err := os.MkdirAll(state, 0o755)
	var f *os.File
	if err == nil {
		if f, err = os.CreateTemp(state, ".writable-"); err == nil {
			f.Close()
			err = os.Remove(f.Name())
		}
	}
	if err == nil {
		return nil
	}
	if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
		err = cause.Err
	}
	return fmt.Errorf("control.state: nothing can be kept in %s: %w", state, err)
}
