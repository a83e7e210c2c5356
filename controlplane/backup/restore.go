// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/config"
	"isthmus/controlplane/session"
	"isthmus/controlplane/session/store"
)

// Options of a restore.
type Options struct {
	Force      bool // files that are there are put aside
	Accounting bool // records that wait for a server are taken over
}

// Restore is a backup on its way to this machine.
type Restore struct {
	*Backup
	opt    Options
	layout *layout
	files  []*file
	gone   []string // files of a former state that the backup has not
	made   []string // folders

	Refusal  error // why Apply would change nothing: a control plane runs, or files are there and there is no Force
	Sessions session.Restored
	Accounts int      // records that wait
	Notes    []string // what is not as it was
	Kept     []string // former files, under their new names
}

// file is to be put in its place.
type file struct {
	*Member
	to, staged string
	data       []byte
	same       bool   // it is there with these contents already
	was        string // where the former file is; empty: there was none
	done       bool
}

const (
	stagedSuffix = ".restore-new"
	// BeforeSuffix is what the names of files get whose place a restored one took.
	BeforeSuffix = ".before-restore"
)

// Plan says where a backup goes on this machine. It changes nothing. A backup that cannot be this one's is an error.
func Plan(b *Backup, at Place, opt Options) (*Restore, error) {
	own, _ := b.of(roleConfig)
	if own == nil {
		return nil, damaged("it has no configuration")
	}
	applied, _ := b.of(roleState + appliedFile)
	l, err := newLayout(at, config.Joined(own, b.dropIns(at)), applied)
	if err != nil {
		return nil, fmt.Errorf("the configuration in the backup is not accepted here: %w", err)
	}
	r := &Restore{Backup: b, opt: opt, layout: l}
	for i := range b.Manifest.Members {
		m := &b.Manifest.Members[i]
		to, err := l.path(m.Role)
		if err != nil {
			return nil, err
		}
		if m.Role != roleState+accountsFile || opt.Accounting {
			r.files = append(r.files, &file{Member: m, to: to, staged: to + stagedSuffix, data: b.Data[i]})
		}
	}
	if r.Refusal = r.running(); r.Refusal == nil {
		r.Refusal = r.occupied()
	}
	return r, nil
}

// dropIns are the configuration's, by the paths that they get; a name that none may have is refused with its role.
func (b *Backup) dropIns(at Place) map[string][]byte {
	list := map[string][]byte{}
	for i := range b.Manifest.Members {
		if name, is := strings.CutPrefix(b.Manifest.Members[i].Role, roleDropIn); is {
			if path := at.dropIn(name); path != "" {
				list[path] = b.Data[i]
			}
		}
	}
	return list
}

// running is the error of a control plane that would write on.
func (r *Restore) running() error {
	socket := r.layout.place(r.layout.start).Socket
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return nil
	}
	conn.Close()
	return fmt.Errorf("a control plane runs at %s: stop it before a restore", socket)
}

// occupied finds what is there already.
func (r *Restore) occupied() error {
	comes := map[string]bool{}
	var there []string
	for _, f := range r.files {
		comes[f.to] = true
		is, err := os.ReadFile(f.to)
		if f.same = err == nil && bytes.Equal(is, f.data); err == nil && !f.same {
			there = append(there, f.to)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscallNotDir) {
			return err
		}
	}
	others := r.layout.dropIns() // more of them would be another configuration
	for _, name := range stateFiles {
		others = append(others, r.layout.statePath(name))
	}
	for _, path := range append(others, r.layout.statePath(plan.Unfinished)) {
		if _, err := os.Lstat(path); err == nil && !comes[path] {
			there = append(there, path)
			if filepath.Base(path) != plan.Unfinished {
				r.gone = append(r.gone, path)
			}
		}
	}
	if place := r.layout.place(r.layout.start); place.Folder != "" && len(there) == 0 {
		list, _ := os.ReadDir(place.Folder)
		for _, e := range list {
			there = append(there, filepath.Join(place.Folder, e.Name()))
		}
	}
	if len(there) == 0 || r.opt.Force {
		return nil
	}
	if len(there) > 3 {
		there = append(there[:2:2], fmt.Sprintf("%d more", len(there)-2))
	}
	return fmt.Errorf("there is something already: %s; --force puts it aside, as FILE%s", strings.Join(there, ", "),
		BeforeSuffix)
}

// Path is where a member goes.
func (r *Restore) Path(role string) string {
	for _, f := range r.files {
		if f.Role == role {
			return f.to
		}
	}
	return ""
}

// Apply puts the files in their places, all or none. An error leaves everything as it was. If the process or machine
// dies between the first and the last file, plan.Unfinished stays, with which no control plane starts.
func (r *Restore) Apply() (err error) {
	if r.Refusal != nil {
		return r.Refusal
	}
	folder := r.layout.place(r.layout.own)
	if folder.Folder != "" {
		if err := r.folder(folder.Folder); err != nil {
			return err
		}
	}
	lock, err := folder.Lock()
	if err != nil {
		return errors.Join(fmt.Errorf("a control plane runs there: %w", err), r.removeFolders())
	}
	if lock != nil {
		defer lock.Close()
	}
	for _, f := range r.files {
		if err = r.stage(f); err != nil {
			break
		}
	}
	unfinished := r.layout.statePath(plan.Unfinished)
	_, failed := os.Stat(unfinished)
	interrupted := failed == nil
	if err == nil {
		err = writeSynced(unfinished, []byte(r.Manifest.Taken.Format(time.RFC3339)+"\n"))
	}
	if err == nil {
		err = r.commit(interrupted)
	}
	if err != nil {
		return errors.Join(err, r.undo(unfinished, interrupted))
	}
	r.syncFolders()
	return os.Remove(unfinished)
}

// folder makes a folder, and notes which ones were missing.
func (r *Restore) folder(path string) error {
	for p := path; ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); err == nil || p == filepath.Dir(p) {
			break
		}
		r.made = append(r.made, p)
	}
	return os.MkdirAll(path, 0o755)
}

// stage writes a file beside its place, on the disk.
func (r *Restore) stage(f *file) error {
	if err := r.folder(filepath.Dir(f.to)); err != nil {
		return err
	}
	data := f.data
	switch f.Role {
	case roleState + sessionsFile:
		return r.stageSessions(f)
	case roleState + accountsFile:
		if err := r.countAccounts(f); err != nil {
			return err
		}
	}
	if err := writeSynced(f.staged, data); err != nil {
		return err
	}
	return r.dress(f)
}

// dress gives a staged file mode, owner and time. The time decides whether the file or what was applied counts.
func (r *Restore) dress(f *file) error {
	r.own(f)
	if err := os.Chmod(f.staged, f.Mode); err != nil {
		return err
	}
	return os.Chtimes(f.staged, time.Time{}, f.Modified)
}

func (r *Restore) stageSessions(f *file) error {
	raw := f.staged + ".raw"
	defer os.Remove(raw)
	if err := writeSynced(raw, f.data); err != nil {
		return err
	}
	_, former, _ := store.Snapshot(f.to) // none, or none that can be read: the zero time
	var err error
	if r.Sessions, err = session.Restore(raw, f.staged, former); err != nil {
		return err
	}
	if r.Sessions.Why != nil {
		r.note("sessions and leases are not taken over: %v", r.Sessions.Why)
	}
	return r.dress(f)
}

func (r *Restore) countAccounts(f *file) error {
	raw := f.staged + ".raw"
	defer os.Remove(raw)
	if err := writeSynced(raw, f.data); err != nil {
		return err
	}
	c, err := session.Inspect(raw, nil)
	if err != nil {
		r.note("records of accounting: %v", err)
	}
	r.Accounts = c.Accounts
	return nil
}

func (r *Restore) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// commit renames the files. interrupted: what is in their places may be of a restore that did not end. What that one
// put aside is older.
func (r *Restore) commit(interrupted bool) error {
	aside := func(path string) (string, error) {
		before := path + BeforeSuffix
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if _, err := os.Lstat(before); err == nil && interrupted {
			return before, os.Remove(path)
		}
		return before, os.Rename(path, before)
	}
	for _, f := range r.files {
		if !f.same {
			was, err := aside(f.to)
			if err != nil {
				return err
			}
			f.was = was
		}
		if err := os.Rename(f.staged, f.to); err != nil {
			return err
		}
		f.done = true
	}
	for _, path := range r.gone {
		was, err := aside(path)
		if err != nil {
			return err
		}
		r.Kept = append(r.Kept, was)
	}
	for _, f := range r.files {
		if f.was != "" {
			r.Kept = append(r.Kept, f.was)
		}
	}
	return nil
}

// undo brings everything back.
func (r *Restore) undo(unfinished string, interrupted bool) (err error) {
	for _, f := range r.files {
		os.Remove(f.staged)
		if f.done && f.was == "" && !f.same {
			err = errors.Join(err, os.Remove(f.to))
		}
		if f.was != "" {
			err = errors.Join(err, os.Rename(f.was, f.to))
		}
	}
	for _, path := range r.gone {
		if _, there := os.Lstat(path); there != nil {
			err = errors.Join(err, os.Rename(path+BeforeSuffix, path))
		}
	}
	r.Kept = nil
	if err == nil && !interrupted {
		os.Remove(unfinished)
	}
	return errors.Join(err, r.removeFolders())
}

// removeFolders removes those that were made, the last ones first.
func (r *Restore) removeFolders() error {
	for _, path := range r.made {
		os.Remove(path)
	}
	return nil
}

func (r *Restore) syncFolders() {
	for _, f := range r.files {
		if d, err := os.Open(filepath.Dir(f.to)); err == nil {
			d.Sync()
			d.Close()
		}
	}
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
