// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/testkit"
)

var taken = time.Unix(1800000000, 123)

// written is a small archive.
func written(t *testing.T, change func(b *Backup)) []byte {
	t.Helper()
	b := &Backup{Manifest: Manifest{Format: Format, Version: "0.1.0", Node: "gw1", Taken: taken}}
	b.add(Member{Role: roleConfig, Mode: 0o640, Modified: taken}, []byte("ports: []\n"))
	b.add(Member{Role: roleState + "api.key", Mode: 0o600}, []byte("key"))
	if change != nil {
		change(b)
	}
	var out bytes.Buffer
	testkit.Must(t, b.Write(&out))
	return out.Bytes()
}

// Row M11: each octet counts, be it of a header, between members or behind the last.
func TestDamage(t *testing.T) {
	good := written(t, nil)
	b, err := Read(bytes.NewReader(good))
	testkit.Must(t, err)
	testkit.Equal(t, fmt.Sprintf("%s %v", b.Data[1], b.Manifest.Members[0].Modified.Equal(taken)), "key true", "read")
	for i := range good {
		harmed := bytes.Clone(good)
		harmed[i] ^= 1 << (i % 8)
		_, err := Read(bytes.NewReader(harmed))
		testkit.ErrorIf(t, err == nil, "octet %d, bit %d: taken", i, i%8)
		_, err = Read(bytes.NewReader(good[:i]))
		testkit.ErrorIf(t, err == nil, "cut at %d: taken", i)
	}
	for _, more := range [][]byte{{0}, make([]byte, 512), good} {
		_, err := Read(bytes.NewReader(append(bytes.Clone(good), more...)))
		testkit.ErrorIf(t, !errors.Is(err, errDamaged), "%d octets more: %v", len(more), err)
	}
}

func TestRefusedArchives(t *testing.T) {
	for _, row := range []struct {
		change func(b *Backup)
		want   string
	}{
		{func(b *Backup) { b.Manifest.Format++ }, "the backup is of format 2, by isthmus \"0.1.0\"; this isthmus "},
		{func(b *Backup) { b.Manifest.Format = 0 }, "format 0"},
		{func(b *Backup) { b.Manifest.Members[1].Role = roleConfig }, "is there twice"},
		{func(b *Backup) { b.Manifest.Members[1].Size = -1 }, "too large"},
		{func(b *Backup) { b.Manifest.Members[1].Size = 2 }, "3 bytes, not 2"},
		{func(b *Backup) { b.Manifest.Members[1].SHA256 = "" }, "another SHA-256"},
	} {
		_, err := Read(bytes.NewReader(written(t, row.change)))
		testkit.Refused(t, err, row.want)
	}
	for _, text := range []string{"", "ports: []\n", strings.Repeat("\x00", 2048)} {
		_, err := Read(strings.NewReader(text))
		testkit.Refused(t, err, "this is no whole backup of isthmus")
	}
}

// machine is a folder that stands for a machine, with the configuration and what it names.
type machine struct {
	dir string
	at  Place
}

const small = "ports: [{name: core, driver: synth, role: core}]\n"

func newMachine(t *testing.T) *machine {
	dir := t.TempDir()
	return &machine{dir, Place{Config: dir + "/etc/isthmus.yaml", Environ: []string{"ISTHMUS_CONTROL_STATE=" + dir +
		"/state", "ISTHMUS_CONTROL_SOCKET=" + dir + "/isthmus.sock"}}}
}

func (m *machine) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(m.dir, name)
	testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	testkit.Must(t, os.WriteFile(path, []byte(text), mode))
}

// files are all files, as "NAME MODE TEXT" lines.
func (m *machine) files(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	testkit.Must(t, filepath.WalkDir(m.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, _ := e.Info()
		text, _ := os.ReadFile(path)
		fmt.Fprintf(&out, "%s %o %s\n", strings.TrimPrefix(path, m.dir+"/"), info.Mode(), bytes.TrimSpace(text))
		return nil
	}))
	return out.String()
}

// running has state of all kinds but stores.
func running(t *testing.T) *machine {
	m := newMachine(t)
	m.write(t, "etc/isthmus.yaml", small, 0o640)
	m.write(t, "etc/isthmus.yaml.d/1.yaml", "routes: []\n", 0o640)
	m.write(t, "secrets/key.pem", "private", 0o600)
	m.write(t, "secrets/cert.pem", "public", 0o644)
	m.write(t, "state/applied.yaml", "control: {api: {listen: [127.0.0.1:9443], anonymous: read, certificate: "+m.dir+
		"/secrets/cert.pem, key: "+m.dir+"/secrets/key.pem}}\n"+small, 0o600)
	m.write(t, "state/placement.json", "{}", 0o600)
	m.write(t, "state/api.key", "own", 0o600)
	m.write(t, "state/audit.log", "{}\n{\"half", 0o600)
	m.write(t, "state/kernel.json", "{}", 0o600)
	m.write(t, "state/sessions.db.bad", "x", 0o600)
	return m
}

func (m *machine) taken(t *testing.T) *Backup {
	t.Helper()
	kept, err := Kept("0.1.0", m.at)
	testkit.Must(t, err)
	b, err := Take(kept, taken)
	testkit.Must(t, err)
	var out bytes.Buffer
	testkit.Must(t, b.Write(&out))
	b, err = Read(&out)
	testkit.Must(t, err)
	return b
}

// Another machine has other folders. Roles, modes and the order of times are kept; what is this machine's stays.
func TestOntoAnotherMachine(t *testing.T) {
	from, to := running(t), newMachine(t)
	old := time.Now().Add(-time.Hour)
	testkit.Must(t, os.Chtimes(from.at.Config, old, old))
	b := from.taken(t)
	r, err := Plan(b, to.at, Options{Accounting: true})
	testkit.Must(t, err)
	testkit.Equal(t, to.files(t), "", "after a plan")
	testkit.Must(t, os.RemoveAll(filepath.Join(from.dir, "secrets")))
	testkit.Must(t, r.Apply())
	applied := from.dir + "/secrets/"
	testkit.Equal(t, to.files(t), `etc/isthmus.yaml 640 ports: [{name: core, driver: synth, role: core}]
etc/isthmus.yaml.d/1.yaml 640 routes: []
state/api.key 600 own
state/applied.yaml 600 control: {api: {listen: [127.0.0.1:9443], anonymous: read, certificate: `+applied+
		`cert.pem, key: `+applied+`key.pem}}
ports: [{name: core, driver: synth, role: core}]
state/audit.log 600 {}
state/placement.json 600 {}
`, "restored")
	key, err := os.Stat(applied + "key.pem")
	testkit.ErrorIf(t, err != nil || key.Mode().Perm() != 0o600, "%v, %v", key, err)
	was, _ := os.Stat(from.at.Config)
	is, _ := os.Stat(to.at.Config)
	testkit.ErrorIf(t, !is.ModTime().Equal(was.ModTime()), "%v, not %v", is.ModTime(), was.ModTime())
	testkit.Equal(t, strings.Join(r.Bound(), "\n"), "control.api.listen: 127.0.0.1", "bound to a machine")
}

func TestMissingFiles(t *testing.T) {
	m := running(t)
	testkit.Must(t, os.Remove(m.dir+"/secrets/key.pem"))
	kept, err := Kept("0.1.0", m.at)
	testkit.Must(t, err)
	_, err = Take(kept, taken)
	testkit.Refused(t, err, "applied/control.api.key: stat "+m.dir+"/secrets/key.pem: no such file")
	testkit.Must(t, os.WriteFile(m.dir+"/state/sessions.db", []byte("damaged"), 0o600))
	m.write(t, "secrets/key.pem", "private", 0o600)
	_, err = Take(kept, taken)
	testkit.Refused(t, err, "state/sessions.db: "+m.dir+"/state/sessions.db: the file does not follow its format")
	m.write(t, "etc/isthmus.yaml", "ports: 7\n", 0o640)
	_, err = Kept("0.1.0", m.at)
	testkit.Refused(t, err, "isthmus.yaml:1")
}

// What is there is not replaced without --force, and put aside with it.
func TestOccupied(t *testing.T) {
	from, to := running(t), newMachine(t)
	b := from.taken(t)
	to.write(t, "state/placement.json", "[]", 0o600)
	to.write(t, "state/audit.log.3", "older", 0o600)
	to.write(t, "etc/isthmus.yaml.d/2.yaml", "{}", 0o600)
	before := to.files(t)
	r, err := Plan(b, to.at, Options{})
	testkit.Must(t, err)
	testkit.Refused(t, r.Apply(), "there is something already: "+to.dir+"/state/placement.json, "+to.dir+
		"/etc/isthmus.yaml.d/2.yaml, "+to.dir+"/state/audit.log.3; --force puts it aside, as FILE.before-restore")
	testkit.Equal(t, to.files(t), before, "after a refusal")
	r, err = Plan(b, to.at, Options{Force: true})
	testkit.Must(t, err)
	testkit.Must(t, r.Apply())
	after := to.files(t)
	for _, want := range []string{"state/placement.json 600 {}", "state/placement.json.before-restore 600 []",
		"state/audit.log.3.before-restore 600 older", "etc/isthmus.yaml.d/2.yaml.before-restore 600 {}"} {
		testkit.ErrorIf(t, !strings.Contains(after, want), "no %q in\n%s", want, after)
	}
	testkit.Equal(t, len(r.Kept), 3, "put aside")

	// Of a stranger in the folder nothing is touched, but one does not restore beside it without a word.
	other := newMachine(t)
	other.write(t, "state/lost+found", "", 0o600)
	r, err = Plan(b, other.at, Options{})
	testkit.Must(t, err)
	testkit.Refused(t, r.Refusal, "state/lost+found; --force")
}

// A file that cannot be put in its place leaves all others as they were.
func TestAllOrNothing(t *testing.T) {
	from := running(t)
	b := from.taken(t)
	testkit.Must(t, os.RemoveAll(filepath.Join(from.dir, "secrets")))
	for name, row := range map[string]struct {
		there string // a file that is in the way
		force bool
	}{
		"a parent is a file":           {"state", true},
		"the former cannot be moved":   {"state/placement.json.before-restore/x", true},
		"the folder of another's file": {"etc", true},
	} {
		to := newMachine(t)
		to.write(t, row.there, "in the way", 0o600)
		if strings.HasPrefix(row.there, "state/") {
			to.write(t, "state/placement.json", "[]", 0o600)
		}
		before := to.files(t)
		r, err := Plan(b, to.at, Options{Force: row.force})
		if err == nil {
			err = r.Apply()
		}
		testkit.ErrorIf(t, err == nil, "%s: restored", name)
		testkit.Equal(t, to.files(t), before, "%s: after %v", name, err)
		_, there := os.Stat(from.dir + "/secrets")
		testkit.ErrorIf(t, there == nil, "%s: a folder is left", name)
	}
}

// A restore that was interrupted, with some files in their places, starts nothing and is done again. What the first one
// put aside is the older.
func TestInterrupted(t *testing.T) {
	from, to := running(t), newMachine(t)
	b := from.taken(t)
	to.write(t, "state/"+plan.Unfinished, "", 0o600)
	to.write(t, "state/placement.json", "half restored", 0o600)
	to.write(t, "state/placement.json"+BeforeSuffix, "[]", 0o600)
	to.write(t, "etc/isthmus.yaml", small, 0o640)
	_, _, err := plan.Start(to.at.Config, to.dir+"/state", to.dir+"/isthmus.sock", slog.New(slog.DiscardHandler))
	testkit.Refused(t, err, "a restore did not end, and its files are of two times: isthmus restore --force again")
	r, err := Plan(b, to.at, Options{Force: true})
	testkit.Must(t, err)
	testkit.Must(t, r.Apply())
	after := to.files(t)
	for want, there := range map[string]bool{"state/placement.json 600 {}": true, plan.Unfinished: false,
		"state/placement.json.before-restore 600 []": true, "half restored": false} {
		testkit.ErrorIf(t, strings.Contains(after, want) != there, "%q: %v, in\n%s", want, !there, after)
	}
	_, files, err := plan.Start(to.at.Config, to.dir+"/state", to.dir+"/isthmus.sock", slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	_, err = to.at.lock(t, b)
	testkit.Refused(t, err, "another process uses it")
	files.Unlock()
}

// lock is a restore beside what holds the folder.
func (p Place) lock(t *testing.T, b *Backup) (*Restore, error) {
	r, err := Plan(b, p, Options{Force: true})
	testkit.Must(t, err)
	return r, r.Apply()
}

func TestNotAccepted(t *testing.T) {
	b := running(t).taken(t)
	for _, row := range []struct {
		change func()
		want   string
	}{
		{func() { b.Manifest.Members[1].Role = "state/../../etc/passwd" }, "this version knows no such role"},
		{func() { b.Manifest.Members[1].Role = "named/aaa.users_file" }, "the configuration names no file there"},
		{func() { b.Data[0] = []byte("ports: 7\n") }, "the configuration in the backup is not accepted here: "},
		{func() { b.Manifest.Members[0].Role = "x" }, "it has no configuration"},
	} {
		row.change()
		_, err := Plan(b, newMachine(t).at, Options{})
		testkit.Refused(t, err, row.want)
	}
}

// What a drop-in says counts: its state folder is in the backup, and is where a restore puts the state.
func TestDropInsCount(t *testing.T) {
	from := newMachine(t)
	from.at.Environ = []string{"BASE=" + from.dir}
	from.write(t, "etc/isthmus.yaml", small, 0o640)
	from.write(t, "etc/isthmus.yaml.d/1.yaml",
		"control: {state: \"${BASE}/elsewhere\", socket: \"${BASE}/isthmus.sock\"}\n", 0o640)
	from.write(t, "elsewhere/api.key", "private", 0o600)
	b := from.taken(t)
	if data, _ := b.of(roleState + "api.key"); string(data) != "private" {
		t.Fatalf("the state that a drop-in names is not in the backup: %v", b.Manifest.Members)
	}
	to := newMachine(t)
	to.at.Environ = []string{"BASE=" + to.dir}
	r, err := Plan(b, to.at, Options{})
	testkit.Must(t, err)
	testkit.Equal(t, r.Path(roleState+"api.key"), to.dir+"/elsewhere/api.key", "where the state goes")
}
