// SPDX-License-Identifier: Apache-2.0

// Package archive writes a tar whose files are in one folder, of mode 0600 and of one time.
package archive

import (
	"archive/tar"
	"io"
	"time"
)

// Writer is for one goroutine. The same calls write the same bytes.
type Writer struct {
	tar    *tar.Writer
	folder string
	at     time.Time
}

// New begins an archive. Its times have whole seconds.
func New(w io.Writer, folder string, at time.Time) *Writer {
	return &Writer{tar.NewWriter(w), folder, at.Truncate(time.Second)}
}

// Put adds a file; its error is the writer's.
func (a *Writer) Put(name string, data []byte) error {
	h := &tar.Header{Name: a.folder + "/" + name, Mode: 0o600, Size: int64(len(data)), ModTime: a.at}
	if err := a.tar.WriteHeader(h); err != nil {
		return err
	}
	_, err := a.tar.Write(data)
	return err
}

// Close ends the archive, not the writer below.
func (a *Writer) Close() error { return a.tar.Close() }
