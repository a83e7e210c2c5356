// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/config"
	"isthmus/controlplane/session/store"
)

// Roles. Behind "named/" and "applied/" is the key at which the configuration file, or that of `config apply`, names
// the file.
const (
	roleConfig  = "config"
	roleDropIn  = "drop-in/" // FILE.d/NAME beside the configuration file
	roleState   = "state/"
	roleNamed   = "named/"
	roleApplied = "applied/"

	sessionsFile = "sessions.db"
	accountsFile = "sessions.accounting.db"
	appliedFile  = "applied.yaml"
	auditFile    = "audit.log"
)

// stateFiles are those of control.state that mean something on another machine, or at another time. kernel.json does
// not: it is what the clones gave this kernel.
var stateFiles = []string{appliedFile, "placement.json", sessionsFile, accountsFile, "api.crt", "api.key",
	auditFile, auditFile + ".1", auditFile + ".2", auditFile + ".3"}

// Place is what the command line says of a control plane; empty: the configuration does.
type Place struct {
	Config         string // the configuration file
	Folder, Socket string
	Environ        []string
}

// layout is where the files of each role are on this machine.
type layout struct {
	Place
	own   *config.Config // of the configuration file
	start *config.Config // of `config apply`, which a start prefers; else own
}

// newLayout reads the configurations. own is with its drop-ins (config.Joined). applied may be nil.
// It is left aside if a start would refuse it.
func newLayout(at Place, own, applied []byte) (*layout, error) {
	l := &layout{Place: at}
	var err error
	if l.own, err = config.ParseWith(at.Config, own, at.Environ, nil); err != nil {
		return nil, err
	}
	l.start = l.own
	if applied != nil {
		if c, err := config.ParseWith(appliedFile, applied, at.Environ, nil); err == nil {
			l.start = c
		}
	}
	return l, nil
}

// place is where the files of a configuration are.
func (l *layout) place(c *config.Config) plan.Place {
	return plan.PlaceOf(l.Folder, l.Socket, &c.Control)
}

// roles are all that files may have here, the configuration first.
func (l *layout) roles() []string {
	list := []string{roleConfig}
	for _, path := range l.dropIns() {
		list = append(list, roleDropIn+filepath.Base(path))
	}
	for _, name := range stateFiles {
		list = append(list, roleState+name)
	}
	own := l.own.Named()
	for _, f := range own {
		list = append(list, roleNamed+f.Key)
	}
	if l.start == l.own {
		return list
	}
	for _, f := range l.start.Named() {
		if !slices.ContainsFunc(own, func(o config.Named) bool { return o.Path == f.Path }) {
			list = append(list, roleApplied+f.Key)
		}
	}
	return list
}

// dropIns are the files beside the configuration file, in the order of their names.
func (l *layout) dropIns() []string {
	list, _ := config.DropIns(l.Config)
	return list
}

// dropIn is where a drop-in of this name goes; empty: config.DropIns would not read it.
func (p Place) dropIn(name string) string {
	if filepath.Ext(name) != ".yaml" || filepath.Base(name) != name || name[0] == '.' ||
		strings.ContainsFunc(name, unicode.IsControl) {
		return ""
	}
	return filepath.Join(config.Folder(p.Config), name)
}

// path is where a file of a role is, or goes.
func (l *layout) path(role string) (string, error) {
	kind, name, _ := strings.Cut(role, "/")
	of := l.own
	switch kind + "/" {
	case roleConfig + "/":
		return l.Config, nil
	case roleDropIn:
		if path := l.dropIn(name); path != "" {
			return path, nil
		}
	case roleState:
		if !slices.Contains(stateFiles, name) {
			break
		}
		return l.statePath(name), nil
	case roleApplied:
		of = l.start
		fallthrough
	case roleNamed:
		for _, f := range of.Named() {
			if f.Key == name {
				return f.Path, nil
			}
		}
		return "", fmt.Errorf("%s: with the environment of this machine, the configuration names no file there", role)
	}
	return "", fmt.Errorf("%.80q: this version knows no such role", role)
}

// statePath follows the process: it has found `config apply`'s text by the file's control.state, and the rest by that
// of what it runs.
func (l *layout) statePath(name string) string {
	switch name {
	case appliedFile, "placement.json", plan.Unfinished:
		return l.place(l.own).File(name)
	case sessionsFile, accountsFile:
		path := l.start.PFCP.Store
		if path == "" {
			path = l.place(l.start).File(sessionsFile)
		}
		if name == accountsFile {
			path = store.AccountsPath(path)
		}
		return path
	}
	return l.place(l.start).File(name)
}
