// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"isthmus/controlplane/config"
	"isthmus/controlplane/kernel"
	"isthmus/controlplane/session/store"
)

// Files outlive the control plane. They hold the text of `config apply`, which then replaces the control plane's file;
// the placement, so that no subscriber moves; and what the kernel holds, to be withdrawn. Writes are atomic: written
// beside and renamed. Without names no file is kept.
type Files struct {
	Applied   string
	placement string
	given     string
	Moved     store.Moved // the placement that was there, if it could not be read
	lock      *os.File    // of their folder
}

// Unlock lets another process have the folder.
func (s Files) Unlock() {
	if s.lock != nil {
		s.lock.Close()
	}
}

// Place is where a control plane keeps what outlives it.
type Place struct {
	Folder string // empty: beside the socket
	Socket string // that the command line talks to
}

// PlaceOf is the configuration's place; folder and socket of the command line override it.
func PlaceOf(folder, socket string, c *config.Control) Place {
	return Place{cmp.Or(folder, c.State), cmp.Or(socket, c.Socket)}
}

// File is the path of a file there.
func (p Place) File(name string) string {
	if p.Folder == "" {
		return p.Socket + "." + name
	}
	return filepath.Join(p.Folder, name)
}

// Lock keeps a folder for this process until the result is closed: two control planes would take turns in writing the
// same files. Without a folder the socket is the lock, and the result nil.
func (p Place) Lock() (*os.File, error) {
	if p.Folder == "" {
		return nil, nil
	}
	lock, err := store.LockFolder(p.Folder)
	if err != nil {
		err = fmt.Errorf("control.state: %w", err)
	}
	return lock, err
}

// Unfinished is the name of a file that is there while a restore replaces files. What a restore that was interrupted
// left is not started with.
const Unfinished = "restore.unfinished"

func (p Place) unfinished() error {
	if _, err := os.Stat(p.File(Unfinished)); err == nil {
		return fmt.Errorf("%s: a restore did not end, and its files are of two times: isthmus restore --force again",
			p.File(Unfinished))
	}
	return nil
}

// filesIn are those in a place.
func filesIn(p Place) Files {
	return Files{Applied: p.File("applied.yaml"), placement: p.File("placement.json"), given: p.File("kernel.json")}
}

// writeWhole replaces a file in one step.
func writeWhole(path string, data []byte) error {
	beside, err := writeBeside(path, data)
	if err != nil {
		return err
	}
	return replace(beside, path)
}

// writeBeside writes a file's successor.
func writeBeside(path string, data []byte) (name string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		os.Remove(f.Name())
	}
	return f.Name(), err
}

func replace(beside, path string) error {
	err := os.Rename(beside, path)
	if err != nil {
		os.Remove(beside)
	}
	return err
}

// Staged is a plan's stored form for a restart, written beside the files that it will replace.
type Staged struct {
	applied string            // goes; "": none does
	files   map[string]string // by path
}

// Stage writes it: a disk may be full, or not be written to.
func (s Files) Stage(plan *Plan) (*Staged, error) {
	out := &Staged{files: map[string]string{}}
	if s.Applied == "" {
		return out, nil
	}
	add := func(path string, data []byte) error {
		beside, err := writeBeside(path, data)
		if err == nil {
			out.files[path] = beside
		}
		return err
	}
	placement, err := json.Marshal(plan.Placement)
	if err == nil && len(plan.Placement) > 0 {
		err = add(s.placement, placement)
	}
	if !plan.Applied {
		out.applied = s.Applied
	} else if err == nil {
		err = add(s.Applied, plan.Text)
	}
	if err != nil {
		out.Discard()
		return nil, fmt.Errorf("the configuration would not be kept for a restart: %w", err)
	}
	return out, nil
}

// Discard removes what was written beside.
func (s *Staged) Discard() {
	for _, beside := range s.files {
		os.Remove(beside)
	}
}

// Keep has the files take their places.
func (s *Staged) Keep() (err error) {
	for path, beside := range s.files {
		err = errors.Join(err, replace(beside, path))
	}
	if s.applied != "" {
		if gone := os.Remove(s.applied); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// KeepGiven notes the kernel's part; an empty one has no file.
func (s Files) KeepGiven(given kernel.Given) error {
	if s.given == "" {
		return nil
	}
	if len(given) == 0 {
		if err := os.Remove(s.given); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.Marshal(given)
	if err != nil {
		return err
	}
	return writeWhole(s.given, data)
}

// lastKept reads JSON kept for a restart; zero without a file. A damaged file is moved aside.
func lastKept[T any](path string, log *slog.Logger) (kept T, moved store.Moved) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return kept, moved
	}
	if err == nil {
		var read T
		if err = json.Unmarshal(data, &read); err == nil {
			return read, moved
		}
		if moved, err = store.MoveAside(path, err, log); err == nil {
			return kept, moved
		}
	}
	log.Error("a file that was kept for a restart cannot be read", "file", path, "error", err)
	return kept, moved
}

// newerThan: a configuration was applied after the file and its drop-ins were last written, and after the last of them
// came or went.
func (s Files) newerThan(file string) bool {
	applied, err := os.Stat(s.Applied)
	if err != nil {
		return false
	}
	names, _ := config.DropIns(file)
	for _, name := range append(names, file, config.Folder(file)) {
		if own, err := os.Stat(name); err == nil && applied.ModTime().Before(own.ModTime()) {
			return false
		}
	}
	return true
}

// LastGiven is what a former process gave the kernel.
func (s Files) LastGiven(log *slog.Logger) (kernel.Given, store.Moved) {
	return lastKept[kernel.Given](s.given, log)
}

// startApplied is the plan of what `config apply` brought: the text of all its files.
func startApplied(file string, before config.Placement) (*Plan, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return MakeWith(file, text, config.Here(), before)
}

// Start chooses the file, or a configuration applied after it was written. folder and socket override the file's.
func Start(file, folder, socket string, log *slog.Logger) (*Plan, Files, error) {
	own, err := MakeWith(file, nil, config.Here(), nil)
	if err != nil {
		return nil, Files{}, err
	}
	at := PlaceOf(folder, socket, &own.Control)
	state := filesIn(at)
	if state.lock, err = at.Lock(); err != nil {
		return nil, Files{}, err
	}
	if err = at.unfinished(); err != nil {
		state.Unlock()
		return nil, Files{}, err
	}
	placement, moved := lastKept[config.Placement](state.placement, log) // none: names decide
	state.Moved = moved
	if state.newerThan(file) {
		plan, err := startApplied(state.Applied, placement)
		if err == nil {
			plan.Applied = true
			log.Warn("starting with what `config apply` brought, not with the file; "+
				"SIGHUP returns to the file", "applied", state.Applied, "file", file)
			return plan, state, nil
		}
		log.Error("applied configuration is not accepted any more, starting with the file", "error", err)
	} else if os.Remove(state.Applied) == nil {
		log.Warn("the file is newer than what `config apply` brought, which is forgotten", "file", file)
	}
	if len(placement) > 0 && len(own.Placement) > 0 {
		if own, err = MakeWith(file, own.Text, config.Here(), placement); err != nil {
			state.Unlock()
		}
	}
	return own, state, err
}
