// SPDX-License-Identifier: Apache-2.0

// Package support makes the archive of a bug report: parts fetched in bounded time and of bounded size. The manifest
// names missing parts. Secrets are removed.
package support

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"isthmus/controlplane/archive"
)

// Bounds of an archive.
const (
	partSize  = 8 << 20          // bytes of one part
	wholeSize = 96 << 20         // of all, before compression
	partTime  = 15 * time.Second // for one part
)

// Part is one file of the archive. Get is called once, ends when ctx does, and may return data beside an error.
type Part struct {
	Name string // path in the archive
	Get  func(ctx context.Context) ([]byte, error)
}

// Outcome is what became of a part.
type Outcome struct {
	Name  string
	Bytes int
	Cut   bool
	Err   error // what is missing, and why
}

func (o Outcome) String() string {
	switch {
	case o.Err != nil && o.Bytes == 0:
		return fmt.Sprintf("missing  %s: %v", o.Name, o.Err)
	case o.Err != nil:
		return fmt.Sprintf("in part  %s: %v", o.Name, o.Err)
	case o.Cut:
		return fmt.Sprintf("cut      %s, at %d bytes", o.Name, o.Bytes)
	}
	return fmt.Sprintf("here     %s, %d bytes", o.Name, o.Bytes)
}

// Write asks for the parts in turn and writes a compressed tar, everything in one folder, MANIFEST last. The outcomes
// are valid also beside an error, which is that of the writer.
func Write(ctx context.Context, w io.Writer, folder string, now time.Time, parts []Part) ([]Outcome, error) {
	packed := gzip.NewWriter(w)
	out := archive.New(packed, folder, now)
	var outcomes []Outcome
	left := wholeSize
	for _, part := range parts {
		data, o := get(ctx, part, min(partSize, left))
		left -= len(data)
		outcomes = append(outcomes, o)
		if len(data) == 0 {
			continue
		}
		if err := out.Put(part.Name, data); err != nil {
			return outcomes, err
		}
	}
	var manifest bytes.Buffer
	for _, o := range outcomes {
		fmt.Fprintln(&manifest, o)
	}
	return outcomes, errors.Join(out.Put("MANIFEST", manifest.Bytes()), out.Close(), packed.Close())
}

// get fetches one part. A part that ignores ctx is abandoned.
func get(ctx context.Context, part Part, limit int) ([]byte, Outcome) {
	o := Outcome{Name: part.Name}
	if o.Err = ctx.Err(); o.Err != nil {
		return nil, o
	}
	if limit == 0 {
		o.Err = errors.New("the archive is full")
		return nil, o
	}
	ctx, cancel := context.WithTimeout(ctx, partTime)
	defer cancel()
	type answer struct {
		data []byte
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		data, err := part.Get(ctx)
		done <- answer{data, err}
	}()
	var a answer
	select {
	case a = <-done:
	case <-ctx.Done():
		a.err = fmt.Errorf("no answer: %w", ctx.Err())
	}
	if len(a.data) > limit {
		a.data, o.Cut = a.data[:limit], true
	}
	o.Bytes, o.Err = len(a.data), a.err
	return a.data, o
}
