// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// FreeRADIUS of Debian, with a configuration of its own: users of a file, accounting as text.
// radiusFolder has the server's files.
func (l *Lab) radiusFolder() string { return filepath.Join(l.opt.Dir, "radius") }

// HomePassword is the one of a user of the lab.
func HomePassword(user string) string { return "secret-of-" + user }

// startRADIUS writes the configuration and starts the server; it answers when this returns.
func (l *Lab) startRADIUS(ctx context.Context) error {
	dir := l.radiusFolder()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var b bytes.Buffer
	err := templates.ExecuteTemplate(&b, "radiusd.conf.tmpl", map[string]any{"Dir": dir, "Secret": radiusSecret,
		"Gateway": l.top.functions[0].n4, "Address": l.top.cores[0].addr})
	if err != nil {
		return err
	}
	users := &strings.Builder{}
	for i := range l.opt.Homes {
		// A home by DHCP has no password of its own: the gateway sends its name.
		password := HomeUser(i)
		if l.opt.PPPoE {
			password = HomePassword(HomeUser(i))
		}
		// Debian 12's version signs only configured answers, and with the attribute where it stands.
		fmt.Fprintf(users, "%s\tCleartext-Password := %q\n\tMessage-Authenticator = 0x00,\n"+
			"\tAcct-Interim-Interval = 60,\n\tClass = 0x%02x\n\n",
			HomeUser(i), password, i+1)
	}
	for name, text := range map[string]string{"radiusd.conf": b.String(), "users": users.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o640); err != nil {
			return err
		}
	}
	log := filepath.Join(dir, "radiusd.log")
	if err := l.spawn("cp", "freeradius", log, true, "freeradius", "-f", "-d", dir, "-n", "radiusd"); err != nil {
		return err
	}
	return l.untilLogged(ctx, log, "Ready to process requests", 10*time.Second)
}

// untilLogged waits for words in a log.
func (l *Lab) untilLogged(ctx context.Context, log, words string, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		b, _ := os.ReadFile(log)
		if bytes.Contains(b, []byte(words)) {
			return nil
		}
		select {
		case p := <-l.ended:
			return fmt.Errorf("%s ended at once (%s):\n%s", p.name, p.state, p.words())
		default:
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("%s does not say %q:\n%s", log, words, b[max(0, len(b)-1000):])
		}
	}
}

// coaAddress is where the gateway takes requests of the server.
func (l *Lab) coaAddress() netip.AddrPort { return netip.AddrPortFrom(l.top.functions[0].n4, 3799) }
