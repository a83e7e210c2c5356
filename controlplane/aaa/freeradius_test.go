// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

const sharedSecret = "testing123"

// freeRADIUS is a real server on loopback ports, with a folder of its own.
type freeRADIUS struct {
	dir, root        string
	process          *os.Process
	auth, acct, tls  int
	signs            bool // answers have Message-Authenticator
	ca, cert, key    string
	ownCert, ownPriv string // the client's
}

// signing is the folder where setup puts a version that signs its answers by default; Debian 12's does not.
const signing = "../../.tools/freeradius"

// server starts the installed FreeRADIUS with users in the format of its module files. signs: it puts
// Message-Authenticator into answers.
func server(t testing.TB, users string, signs bool) *freeRADIUS {
	t.Helper()
	if _, err := exec.LookPath("freeradius"); err != nil {
		t.Skip("freeradius is not installed: ./dev setup")
	}
	return start(t, users, signs, "")
}

// start runs the FreeRADIUS below a folder; empty: the installed one.
func start(t testing.TB, users string, signs bool, root string) *freeRADIUS {
	t.Helper()
	f := &freeRADIUS{dir: t.TempDir(), root: root, auth: freePort(t), acct: freePort(t), tls: freePort(t),
		signs: signs}
	f.certificates(t)
	write := func(name, text string) {
		testkit.Must(t, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600))
	}
	write("dictionary", "")
	write("users", users)
	write("radiusd.conf", f.config())
	cmd := exec.Command("freeradius")
	if root != "" {
		cmd = exec.Command(filepath.Join(root, "usr/sbin/freeradius"), "-D", filepath.Join(root,
			"usr/share/freeradius"))
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(root, "usr/lib/freeradius"))
	}
	cmd.Args = append(cmd.Args, "-f", "-l", filepath.Join(f.dir, "log"), "-d", f.dir, "-n", "radiusd")
	f.run(t, cmd)
	return f
}

// run starts it, until the test ends.
func (f *freeRADIUS) run(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	testkit.Must(t, cmd.Start())
	f.process = cmd.Process
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(f.dir, "log"))
			t.Logf("FreeRADIUS:\n%s", log)
		}
	})
	testkit.Until(t, "FreeRADIUS is ready", func() bool {
		log, _ := os.ReadFile(filepath.Join(f.dir, "log"))
		testkit.FatalIf(t, strings.Contains(string(log), "Errors"), "%s", log)
		return strings.Contains(string(log), "Ready to process requests")
	})
}

func freePort(t testing.TB) int {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.Must(t, err)
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).Port
}

func (f *freeRADIUS) config() string {
	sign := ""
	if f.signs {
		sign = "update reply {\n Message-Authenticator := 0x00\n}\n"
	}
	// A brace ends its line, or has its own.
	return strings.NewReplacer("{ ", "{\n", " }", "\n}").Replace(fmt.Sprintf(`
prefix = /usr
libdir = %[10]s/usr/lib/freeradius
confdir = %[1]s
raddbdir = %[1]s
logdir = %[1]s
run_dir = %[1]s
radacctdir = %[1]s
max_requests = 16384
log { destination = files
 file = %[1]s/log }
security { reject_delay = 0
 status_server = yes }
thread pool { start_servers = 2
 max_servers = 2
 min_spare_servers = 1
 max_spare_servers = 2
 max_requests_per_server = 0 }
client localhost { ipaddr = 127.0.0.1
 secret = %[2]s
 require_message_authenticator = yes }
clients tls { client localhost { ipaddr = 127.0.0.1
 proto = tls
 secret = radsec } }
modules { pap { }
 chap { }
 mschap { use_mppe = no }
 files { filename = %[1]s/users }
 detail { filename = %[1]s/detail } }
server default {
listen { type = auth
 ipaddr = 127.0.0.1
 port = %[3]d }
listen { type = acct
 ipaddr = 127.0.0.1
 port = %[4]d }
listen { type = auth+acct
 ipaddr = 127.0.0.1
 proto = tcp
 port = %[5]d
 clients = tls
 tls { private_key_file = %[7]s
  certificate_file = %[8]s
  ca_file = %[9]s
  require_client_cert = yes
  tls_min_version = "1.2"
  tls_max_version = "1.2" } }
authorize { chap
 mschap
 files
 pap }
authenticate { Auth-Type PAP { pap }
 Auth-Type CHAP { chap }
 Auth-Type MS-CHAP { mschap } }
accounting { detail }
post-auth { %[6]s
 Post-Auth-Type REJECT { %[6]s } }
}
`, f.dir, sharedSecret, f.auth, f.acct, f.tls, sign, f.key, f.cert, f.ca, f.root))
}

// yaml is the configuration of a client; extra goes into the server's entry.
func (f *freeRADIUS) yaml(extra string) string {
	return fmt.Sprintf(`radius:
  nas: {identifier: bng-1, address: 127.0.0.1}
  servers: [{address: 127.0.0.1, port: %d, accounting_port: %d, secret: %s%s}]
aaa: {methods: [radius]}
`, f.auth, f.acct, sharedSecret, extra)
}

func (f *freeRADIUS) tlsYAML() string {
	return fmt.Sprintf(`radius:
  servers: [{address: 127.0.0.1, port: %d, accounting_port: %d, message_authenticator: anywhere,
    tls: {ca: %s, certificate: %s, key: %s}}]
aaa: {methods: [radius]}
`, f.tls, f.tls, f.ca, f.ownCert, f.ownPriv)
}

// detail is what accounting wrote.
func (f *freeRADIUS) detail() string {
	b, _ := os.ReadFile(filepath.Join(f.dir, "detail"))
	return string(b)
}

// certificates makes an authority's, the server's and our own.
func (f *freeRADIUS) certificates(t testing.TB) {
	t.Helper()
	ca := testkit.NewAuthority(t)
	save := func(name string, text []byte) string {
		path := filepath.Join(f.dir, name)
		testkit.Must(t, os.WriteFile(path, text, 0o600))
		return path
	}
	f.ca = save("ca.pem", ca.PEM)
	cert, key := ca.Issue(t, "server")
	f.cert, f.key = save("server.pem", cert), save("server.key", key)
	cert, key = ca.Issue(t, "client")
	f.ownCert, f.ownPriv = save("client.pem", cert), save("client.key", key)
}
