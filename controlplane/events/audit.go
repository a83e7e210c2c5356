// SPDX-License-Identifier: Apache-2.0

package events

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

const (
	auditSize  = 8 << 20 // bytes of a file
	auditFiles = 4       // PATH and PATH.1 to PATH.3
)

// Audit is a file of JSON lines, one event each, of operators' changes. It is closed between writes, so that other
// programs may move it.
type Audit struct {
	path string
	size int64
	log  *slog.Logger
	lock sync.Mutex
}

// NewAudit appends to path; its folder is made at the first event if missing. Failed writes are logged.
func NewAudit(path string, log *slog.Logger) *Audit {
	return &Audit{path: path, size: auditSize, log: log}
}

func (a *Audit) write(e *Event) {
	line, err := json.Marshal(e)
	if err == nil {
		err = a.append(append(line, '\n'))
	}
	if err != nil {
		a.log.Error("an event is not in the audit file", "error", err, "kind", e.Kind, "who", e.Who)
	}
}

func (a *Audit) append(line []byte) error {
	a.lock.Lock()
	defer a.lock.Unlock()
	if err := a.rotate(int64(len(line))); err != nil {
		return err
	}
	f, err := os.OpenFile(a.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(a.path), 0o755); err == nil {
			f, err = os.OpenFile(a.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
		}
	}
	if err != nil {
		return err
	}
	if torn(f) {
		line = append([]byte{'\n'}, line...)
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// torn: the last line has no end, since the disk was full or the machine died.
func torn(f *os.File) bool {
	var last [1]byte
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	_, err = f.ReadAt(last[:], info.Size()-1)
	return err == nil && last[0] != '\n'
}

// rotate makes room for n bytes: the oldest file goes.
func (a *Audit) rotate(n int64) error {
	info, err := os.Stat(a.path)
	if err != nil || info.Size()+n <= a.size {
		return nil
	}
	name := func(i int) string {
		if i == 0 {
			return a.path
		}
		return a.path + "." + strconv.Itoa(i)
	}
	for i := auditFiles - 1; i > 0; i-- {
		if err := os.Rename(name(i-1), name(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
