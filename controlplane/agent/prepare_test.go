// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/testkit"
)

// coaClient is a configuration with a client of changes.
func coaClient(listen, client string) string {
	return "radius: {coa: {listen: [" + listen + "], clients: [{address: 127.0.0.1, " + client + "}]}}\n"
}

// A file with unusable contents, or that names unusable files, is refused before any of it is in effect: the former
// plan goes on, here and after a restart. The reason does not quote those files.
func TestWhatCannotBeUsedIsRefused(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	taken, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.Must(t, err)
	defer taken.Close()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	testkit.Must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	const quoted = "hunter2"
	access := signingIn[strings.Index(signingIn, "access:"):]
	with := func(text string) string {
		return upf + instances + "pools: [{name: homes, instance: internet, prefix: 10.64.0.0/30}]\n" + text + access
	}
	users := func(path string) string { return with("aaa: {methods: [local], users_file: " + path + "}\n") }
	server := func(words string) string {
		return with("radius: {servers: [{address: 127.0.0.1, use: accounting, " + words + "}]}\n")
	}
	good := file("users.yaml", "- {name: anna, password: x}\n")
	a, stop := launchMobile(t, s, dir, users(good))
	for _, row := range []struct {
		name, text, want string
		check            bool // which `config check` finds too
	}{
		{"no file of users", users(dir + "/none"), "aaa.users_file: open ", true},
		{"a file of users that never ends", users("/dev/zero"), "is no regular file", true},
		{"a file of users that blocks", users(dir + "/fifo"), "is no regular file", true},
		{"a file of something else", users(file("passwd", "root:"+quoted+":0\n")), "needs a list, found", true},
		{"no YAML", users(file("yaml", "- *"+quoted+"\n")), "not valid YAML", true},
		{"an unknown key", users(file("key", "- {name: a, "+quoted+": b}\n")), ":1: [0]: unknown key", true},
		{"a wrong value", users(file("value", "- {name: a, ipv4: "+quoted+"}\n")), ":1: [0].ipv4: ", true},
		{"a wrong hash", users(file("hash", "- {name: "+quoted+", password_hash: $argon2id$"+quoted+"}\n")),
			":1: [0].password_hash: ", true},
		{"a user in both", with("aaa: {methods: [local], users: [{name: anna}], users_file: " + good + "}\n"),
			":1: [0].name: ", true},
		{"a wrong bcrypt", with("aaa: {methods: [local], users: [{name: a, password_hash: $2y$10$x}]}\n"),
			"aaa.users[0].password_hash: ", true},
		{"no file of a secret", server("secret_file: " + dir + "/none"), "open ", true},
		{"no authority", server("tls: {ca: " + dir + "/none, certificate: x, key: x}"), "tls.ca: open ", true},
		{"no certificate", server("tls: {ca: " + file("ca", "-----BEGIN "+quoted+"-----\n") +
			", certificate: " + good + ", key: " + good + "}"), "tls.ca: no certificate", true},
		{"no secret of who changes", with(coaClient("127.0.0.1", "secret_file: "+dir+"/none")), "open ", true},
		{"no address of ours", with(coaClient("192.0.2.77", "secret: s")), "radius.coa.listen: ", true},
		{"no relay of ours", with("") + "  dhcp: {address6: \"2001:db8::77\", servers6: [\"2001:db8::9\"]}\n",
			"access.dhcp.address6: ", true},
		{"no relay of ours for IPv4", with("") + "  dhcp: {address: 192.0.2.77, servers: [192.0.2.9]}\n",
			"access.dhcp.address: ", true},
		{"somebody else's port", with(coaClient(taken.LocalAddr().String(), "secret: s")), "radius.coa.listen: ",
			false},
	} {
		plan, err := plan.Make("new.yaml", []byte(row.text))
		if err == nil {
			if bad := plan.Check(); row.check != (bad != nil) {
				t.Errorf("%s: checked: %v", row.name, bad)
			}
			plan.Applied = true
			_, err = a.owner.Apply(t.Context(), plan)
		}
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), quoted) {
			t.Errorf("%s: %v", row.name, err)
		}
		_, there := os.Stat(dir + "/applied.yaml")
		testkit.ErrorIf(t, !errors.Is(there, os.ErrNotExist), "%s: is kept for a restart", row.name)
		testkit.ErrorIf(t, string(a.owner.Plan().Text) != users(good), "%s: runs", row.name)
	}
	stop()
}

// The first configuration with sign-in is for the next start, which must not fail either.
func TestWhatTheNextStartCannotUseIsRefused(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	a, stop := launchMobile(t, s, dir, upf+instances)
	defer stop()
	plan, err := plan.Make("new.yaml", []byte(upf+instances+signingIn+
		"  dhcp: {address: 192.0.2.77, servers: [192.0.2.9]}\n"))
	testkit.Must(t, err)
	_, err = a.owner.Apply(t.Context(), plan)
	testkit.Refused(t, err, "access.dhcp.address: ")
	testkit.ErrorIf(t, string(a.owner.Plan().Text) != upf+instances, "it runs")
}

// Prepared addresses and files are given up when the data plane refuses.
func TestPreparedIsGivenUp(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	a, stop := launchMobile(t, s, dir, upf+instances+signingIn)
	defer stop()
	free, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.Must(t, err)
	at := free.LocalAddr().(*net.UDPAddr)
	testkit.Must(t, free.Close())
	s.Refuse("no", func(id dptest.ID, _ []byte) bool { return id.Kind == api.KindRoute })
	text := strings.Replace(signingIn, "radius: {", "radius: {coa: {listen: ["+at.String()+
		"], clients: [{address: 127.0.0.1, secret: s}]}, ", 1)
	text += "routes: [{prefix: 203.0.113.0/24, via: 10.6.0.2}]\n"
	plan, err := plan.Make("new.yaml", []byte(upf+instances+text))
	testkit.Must(t, err)
	plan.Applied = true
	_, err = a.owner.Apply(t.Context(), plan)
	testkit.Refused(t, err, "no")
	free, err = net.ListenUDP("udp4", at)
	testkit.Must(t, err)
	testkit.Must(t, free.Close())
	left, _ := filepath.Glob(dir + "/applied.yaml*")
	testkit.ErrorIf(t, len(left) > 0, "left: %v", left)
}

// A configuration that could not be kept for a restart is refused.
func TestConfigurationIsKeptOrRefused(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	opt := outside(s, dir)
	opt.File, opt.State = dir+"/small.yaml", dir+"/state"
	testkit.Must(t, os.WriteFile(opt.File, []byte(small), 0o600))
	a, stop := restart(t, opt)
	defer stop()
	testkit.Must(t, os.RemoveAll(opt.State))
	testkit.Must(t, os.WriteFile(opt.State, nil, 0o600)) // no folder, as when a disk cannot be written to
	plan, err := plan.Make("new.yaml", []byte(small+route))
	testkit.Must(t, err)
	plan.Applied = true
	_, err = a.owner.Apply(t.Context(), plan)
	testkit.Refused(t, err, "would not be kept for a restart")
	testkit.ErrorIf(t, string(a.owner.Plan().Text) != small, "it runs")
}
