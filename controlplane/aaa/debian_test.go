// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"isthmus/controlplane/testkit"
)

const packaged = "/etc/freeradius/3.0" // of Debian's package

// debianServer is a FreeRADIUS with the configuration of Debian's package and a user. It has a folder and ports of its
// own. change may change the folder's files before it starts.
func debianServer(t *testing.T, change func(folder string)) *freeRADIUS {
	t.Helper()
	if _, err := os.ReadFile(packaged + "/radiusd.conf"); err != nil {
		t.Skipf("no configuration of Debian's freeradius: %v (./dev setup, as root)", err)
	}
	f := &freeRADIUS{dir: t.TempDir(), auth: freePort(t), acct: freePort(t)}
	folder := filepath.Join(f.dir, "3.0")
	testkit.Must(t, exec.Command("cp", "-r", packaged, folder).Run())
	testkit.Must(t, os.Mkdir(filepath.Join(f.dir, "radacct"), 0o700))
	edit := func(name string, fn func(text string) string) {
		path := filepath.Join(folder, name)
		text, err := os.ReadFile(path)
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(path, []byte(fn(string(text))), 0o600))
	}
	edit("radiusd.conf", func(text string) string { // its place, and its user
		text = regexp.MustCompile(`(?m)^(raddbdir) = .*$`).ReplaceAllString(text, "$1 = "+folder)
		text = regexp.MustCompile(`(?m)^(logdir|run_dir) = .*$`).ReplaceAllString(text, "$1 = "+f.dir)
		return regexp.MustCompile(`(?m)^\s*(user|group) = freerad$`).ReplaceAllString(text, "")
	})
	ports, port := []int{f.auth, f.acct}, regexp.MustCompile(`(?m)^(\s*port =) \d+`)
	number := func(text string) string {
		return port.ReplaceAllStringFunc(text, func(line string) string {
			if len(ports) == 0 {
				ports = append(ports, freePort(t))
			}
			line = port.ReplaceAllString(line, fmt.Sprint("$1 ", ports[0]))
			ports = ports[1:]
			return line
		})
	}
	edit("sites-available/default", number)
	edit("sites-available/inner-tunnel", number)
	edit("mods-config/files/authorize", func(text string) string {
		return "anna Cleartext-Password := \"pw\"\n\tReply-Message = \"welcome\"\n" + text
	})
	if change != nil {
		change(folder)
	}
	f.run(t, exec.Command("freeradius", "-f", "-l", filepath.Join(f.dir, "log"), "-d", folder))
	return f
}

// signs is the manual's first entry of FreeRADIUS' users, which makes Debian's package sign its answers.
func signs(t *testing.T) string {
	t.Helper()
	manual, err := os.ReadFile("../../docs/access.md")
	testkit.Must(t, err)
	_, after, ok := strings.Cut(string(manual), packaged+"/mods-config/files/authorize\"\n")
	entry, _, whole := strings.Cut(after, "\n\n")
	testkit.FatalIf(t, !ok || !whole || !strings.HasPrefix(entry, "DEFAULT\n"), "the first entry: %q", entry)
	return entry + "\n"
}

// Answers of Debian's package are not believed with the preset, since it does not sign them. Where it signs in
// post-auth, the signature is not the first attribute. The attempt says which of both. With the manual's entry answers
// are believed.
func TestDebianFreeRADIUS(t *testing.T) {
	var mu sync.Mutex
	told := map[string]int{}
	o := Options{Notify: func(kind, about string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		told[fmt.Sprint(kind, " ", about, args[:min(len(args), 4)])]++ // without the words
	}}
	const brief = ", name: one, timeout_ms: 500, tries: 1"
	f := debianServer(t, nil)
	a := aaaOf(t, f.yaml(brief), o)
	for range 2 { // of the second request it is known at once
		v := decide(t, a, with(pap("anna", "pw").Credentials))
		testkit.ErrorIf(t, !v.Silent || !strings.HasPrefix(v.Why, "RADIUS server one answers, but is not signed: "),
			"as installed: %+v", v)
	}
	f = server(t, users, true)
	a = aaaOf(t, f.yaml(brief), o)
	v := decide(t, a, with(pap("anna", "pw").Credentials))
	testkit.Equal(t, v.Why, "RADIUS server one answers, signed, but not first: set message_authenticator: anywhere",
		"signed in post-auth")
	for _, what := range []string{"unsigned", "signed-late"} {
		testkit.Until(t, what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return told["radius.doubted one[use authentication reason "+what+"]"] == 1
		})
	}

	f = debianServer(t, func(folder string) {
		users := filepath.Join(folder, "mods-config/files/authorize")
		text, err := os.ReadFile(users)
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(users, append([]byte(signs(t)), text...), 0o600))
	})
	a = aaaOf(t, f.yaml(", name: one"), o)
	for password, accept := range map[string]bool{"pw": true, "no": false} {
		v := decide(t, a, with(pap("anna", password).Credentials))
		testkit.ErrorIf(t, v.Silent || v.Accept != accept, "as the manual says: %+v", v)
	}
	v = decide(t, a, with(byCHAP("anna", "pw").Credentials))
	testkit.ErrorIf(t, !v.Accept, "CHAP: %+v", v)
	testkit.Must(t, a.Account(sample(Start, "s1")))
	testkit.Until(t, "accounting", func() bool { return a.State().Queue.Sent == 1 })
}
