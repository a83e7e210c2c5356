// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dhcp"
	"isthmus/controlplane/session/store"
)

// Kept lists what outlives a control plane, whether it runs or not, and whether the files are there or not.
func Kept(version string, at Place) (v1.Kept, error) {
	l, err := layoutHere(at)
	if err != nil {
		return v1.Kept{}, err
	}
	host, _ := os.Hostname()
	kept := v1.Kept{Version: version, Node: cmp.Or(l.start.PFCP.Node(), host, "unknown"), DUID: machineDUID(l.start)}
	for _, role := range l.roles() {
		path, err := l.path(role)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return v1.Kept{}, err
		}
		kept.Files = append(kept.Files, v1.KeptFile{Role: role, Path: path})
	}
	return kept, nil
}

// layoutHere is that of the files on this machine.
func layoutHere(at Place) (*layout, error) {
	own, err := config.Read(at.Config)
	if err != nil {
		return nil, err
	}
	l, err := newLayout(at, own, nil)
	if err != nil {
		return nil, err
	}
	applied, err := config.ReadFile(l.statePath(appliedFile))
	if err != nil {
		return l, nil
	}
	return newLayout(at, own, applied)
}

// machineDUID is the DUID that this machine's id makes, where a configuration that serves DHCP has none of its own.
func machineDUID(c *config.Config) string {
	if c.Access.DHCP.DUID != "" || len(c.Access.Ports) == 0 {
		return ""
	}
	machine, _ := os.ReadFile("/etc/machine-id") // as agent/signin does
	return hex.EncodeToString(dhcp.DUID(string(machine)))
}

// Files that change while they are read are read again; so often at most, and so long apart.
const (
	readings     = 50
	readingPause = 20 * time.Millisecond
)

// Take reads the files as a start of the control plane would find them at one moment, while it runs or not. Of a store
// it has all frames that were whole (store.Snapshot). Accounting is read behind the sessions: a session may be in the
// backup beside its end, which is sent again, but no end is missing. All other files are those between two of their
// changes.
func Take(kept v1.Kept, now time.Time) (*Backup, error) {
	for range readings {
		before := fingerprint(kept)
		b, err := take(kept, now)
		if slices.Equal(before, fingerprint(kept)) {
			return b, err
		}
		time.Sleep(readingPause)
	}
	return nil, errors.New("the files change all the time: isthmus config apply is running again and again")
}

// fingerprint changes with each file but the stores, which are read in one moment.
func fingerprint(kept v1.Kept) (list []string) {
	for _, f := range kept.Files {
		info, err := os.Stat(f.Path)
		if err != nil || isStore(f.Role) {
			list = append(list, "")
			continue
		}
		inode := info.Sys().(*syscall.Stat_t).Ino
		list = append(list, fmt.Sprint(inode, info.Size(), info.ModTime().UnixNano()))
	}
	return list
}

func isStore(role string) bool {
	return role == roleState+sessionsFile || role == roleState+accountsFile
}

func take(kept v1.Kept, now time.Time) (*Backup, error) {
	b := &Backup{Manifest: Manifest{Format: Format, Version: kept.Version, Node: kept.Node, Taken: now.UTC(),
		DUID: kept.DUID, Members: []Member{}}}
	for _, f := range kept.Files {
		info, err := os.Stat(f.Path)
		if errors.Is(err, fs.ErrNotExist) && f.Role != roleConfig && isState(f.Role) {
			continue
		}
		var data []byte
		if err == nil {
			data, err = b.read(f)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Role, err)
		}
		m := Member{Role: f.Role, Path: f.Path, Mode: info.Mode().Perm(), Modified: info.ModTime().UTC()}
		m.Owner, m.Group = ownersOf(info)
		b.add(m, data)
	}
	return b, nil
}

func isState(role string) bool {
	return len(role) > len(roleState) && role[:len(roleState)] == roleState
}

func (b *Backup) read(f v1.KeptFile) ([]byte, error) {
	if !isStore(f.Role) {
		data, err := config.ReadFile(f.Path)
		if f.Role == roleState+auditFile { // a line may be on its way
			data = data[:bytes.LastIndexByte(data, '\n')+1]
		}
		return data, err
	}
	data, recovery, err := store.Snapshot(f.Path)
	if f.Role == roleState+sessionsFile {
		b.Manifest.Recovery = recovery
	}
	if err != nil {
		err = fmt.Errorf("%s: %w; a start of the control plane moves such a file aside", f.Path, err)
	}
	return data, err
}

// ownersOf are names of a file's user and group, empty where this machine has none.
func ownersOf(info fs.FileInfo) (owner, group string) {
	is := info.Sys().(*syscall.Stat_t)
	if u, err := user.LookupId(strconv.Itoa(int(is.Uid))); err == nil {
		owner = u.Username
	}
	if g, err := user.LookupGroupId(strconv.Itoa(int(is.Gid))); err == nil {
		group = g.Name
	}
	return owner, group
}
