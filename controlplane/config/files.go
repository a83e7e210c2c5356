// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"syscall"
)

// ReadFile reads a file that the configuration names. An applied configuration may name any file: a file that blocks or
// never ends is refused.
func ReadFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	return data, err
}

var verbs = regexp.MustCompile(`%[a-z]`)

// withoutValues is the text of a reason, with … where it would quote a file.
func withoutValues(format string) string { return verbs.ReplaceAllString(format, "…") }
