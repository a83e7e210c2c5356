// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/config"
	"isthmus/controlplane/cputest"
	"isthmus/controlplane/events"
	"isthmus/controlplane/testkit"
)

// guarded is a guard before a handler that returns the client; reading needs the role read, changes operate.
func guarded(t testing.TB) (g *Guard, h http.Handler, read, operate string) {
	t.Helper()
	g = NewGuard(events.New(nil))
	g.pause = 0
	read, one := Make()
	operate, two := Make()
	g.Configure(&config.API{Tokens: []config.Token{{Name: "noc", Role: "read", SHA256: one},
		{Name: "admin", Role: "operate", SHA256: two}}})
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+LoginPath, g.Login)
	mux.HandleFunc("POST "+LogoutPath, g.Logout)
	mux.HandleFunc("/v1/whoami", WhoAmI)
	self := http.HandlerFunc(WhoAmI)
	mux.Handle("GET /read", Require(Read, self))
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.Handle("POST /change", Require(Operate, self))
	return g, g.Handler(mux), read, operate
}

// ask sends a request with a header of "Name: value" lines; its source is a loopback address by default.
func ask(h http.Handler, request, from, body string, head ...string) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(request, " ")
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:9443"
	r.RemoteAddr = "127.0.0.1:40000"
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9443}
	if from != "" {
		r.RemoteAddr, r.Host = from, "gateway.example:9443"
		local = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 9443}
	}
	for _, line := range head {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, at(r, local))
	return w
}

// at is a request that came in at an address of ours.
func at(r *http.Request, local net.Addr) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
}

func TestRoles(t *testing.T) {
	g, h, read, operate := guarded(t)
	const far = "198.51.100.7:5000"
	json := "Content-Type: application/json"
	for _, test := range []struct {
		request, from string
		head          []string
		want          int
	}{
		{"GET /read", far, nil, 401},
		{"GET /read", "", nil, 401},
		{"GET /v1/whoami", far, nil, 200},
		{"GET /read", far, []string{"Authorization: Bearer " + read}, 200},
		{"GET /read", far, []string{"Authorization: bearer " + read}, 200},
		{"GET /read", far, []string{"Authorization: Basic " + read}, 401},
		{"GET /read", far, []string{"Authorization: Bearer " + read[:len(read)-1]}, 401},
		{"GET /read", far, []string{"Authorization: Bearer"}, 401},
		{"GET /read", far, []string{"Authorization: " + strings.Repeat("x", 8000)}, 401},
		{"POST /change", far, []string{"Authorization: Bearer " + read, json}, 403},
		{"POST /change", far, []string{"Authorization: Bearer " + operate, json}, 200},
		{"POST /change", far, []string{"Authorization: Bearer " + operate,
			"Content-Type: Application/YAML; charset=utf-8"}, 200},
		{"POST /change", far, []string{"Authorization: Bearer " + operate, "Isthmus-Client: 1"}, 200},
	} {
		w := ask(h, test.request, test.from, "", test.head...)
		testkit.ErrorIf(t, w.Code != test.want, "%s %.80v: %d %s", test.request, test.head, w.Code, w.Body)
	}
	s := *g.settings.Load()
	s.Anonymous = "read"
	g.Configure(&s)
	testkit.Equal(t, ask(h, "GET /read", "", "").Code, 200, "from this machine without a token")
	testkit.Equal(t, ask(h, "GET /read", far, "").Code, 401, "from another without a token")
	for head, why := range map[string]string{"Basic eDp5": "is not Bearer", "Bearer none": unknownToken} {
		body := ask(h, "GET /read", far, "", "Authorization: "+head).Body.String()
		testkit.ErrorIf(t, !strings.Contains(body, why), "%s: %s", head, body)
	}
	testkit.Equal(t, ask(h, "POST /change", "", "", json).Code, 403, "a change from this machine without a token")
}

// Requests that foreign pages can cause have no effect.
func TestForeignPages(t *testing.T) {
	g, h, _, operate := guarded(t)
	s := *g.settings.Load()
	s.Anonymous, s.Hosts = "read", []string{"lab.example"}
	g.Configure(&s)
	token := "Authorization: Bearer " + operate
	json := "Content-Type: application/json"
	for _, test := range []struct {
		name, request string
		head          []string
		want          int
	}{
		{"DNS rebinding", "GET /read", []string{"Host: evil.example:9443"}, 403},
		{"a number that is no loopback address", "GET /read", []string{"Host: 192.0.2.9"}, 403},
		{"no name", "GET /read", []string{"Host: "}, 403},
		{"localhost", "GET /read", []string{"Host: LocalHost:9443"}, 200},
		{"IPv6", "GET /read", []string{"Host: [::1]:9443"}, 200},
		{"a name of the configuration", "GET /read", []string{"Host: lab.example"}, 200},
		{"our own origin", "POST /change", []string{token, json, "Origin: https://127.0.0.1:9443"}, 200},
		{"another origin", "POST /change", []string{token, json, "Origin: https://evil.example"}, 403},
		{"another port's origin", "POST /change", []string{token, json, "Origin: http://127.0.0.1:80"}, 403},
		{"no origin to name", "POST /change", []string{token, json, "Origin: null"}, 403},
		{"a form", "POST /change", []string{token, "Content-Type: application/x-www-form-urlencoded"}, 403},
		{"text", "POST /change", []string{token, "Content-Type: text/plain"}, 403},
		{"no type", "POST /change", []string{token}, 403},
		{"another site's script", "GET /read", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"},
			403},
		{"another port's script", "POST /change", []string{token, json, "Sec-Fetch-Site: same-site"}, 403},
		{"a link from another site", "GET /read",
			[]string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, 200},
		{"our own script", "POST /change", []string{token, json, "Sec-Fetch-Site: same-origin"}, 200},
		{"a login form of another page", "POST /v1/login",
			[]string{"Content-Type: application/x-www-form-urlencoded"}, 403},
	} {
		g.failures = newFailures()
		w := ask(h, test.request, "", "", test.head...)
		testkit.ErrorIf(t, w.Code != test.want, "%s: %d %s", test.name, w.Code, w.Body)
	}
	policy := ask(h, "GET /read", "", "").Header().Get("Content-Security-Policy")
	testkit.ErrorIf(t, !strings.Contains(policy, "default-src 'self'"), "policy %q", policy)
}

func TestLogin(t *testing.T) {
	g, h, read, _ := guarded(t)
	body, _ := json.Marshal(Given{read})
	w := ask(h, "POST /v1/login", "", string(body), "Content-Type: application/json")
	testkit.FatalIf(t, w.Code != 200 || len(w.Result().Cookies()) != 1, "%d %s", w.Code, w.Body)
	c := w.Result().Cookies()[0]
	testkit.ErrorIf(t, !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || strings.Contains(c.Value, read),
		"%+v", c)
	cookie := "Cookie: isthmus=" + c.Value
	w = ask(h, "GET /read", "", "", cookie)
	testkit.Equal(t, strings.TrimSpace(w.Body.String()), `{"role":"read","token":"noc"}`, "whoever has the cookie")
	testkit.Equal(t, ask(h, "POST /change", "", "", cookie, "Isthmus-Client: 1").Code, 403,
		"a change by a reader's cookie")
	form := []string{"Content-Type: application/x-www-form-urlencoded", "Origin: https://127.0.0.1:9443"}
	w = ask(h, "POST /v1/login", "", "token="+read, form...)
	testkit.ErrorIf(t, w.Code != 303 || w.Header().Get("Location") != "/", "by a form: %d %s", w.Code, w.Body)
	for _, bad := range []string{"", "{", `{"token":""}`, `{"token":"isthmus_x"}`, strings.Repeat("x", 2000),
		"[1]"} {
		w := ask(h, "POST /v1/login", "", bad, "Content-Type: application/json")
		testkit.ErrorIf(t, w.Code != 401, "%.20q: %d", bad, w.Code)
	}
	ask(h, "POST /v1/logout", "", "", cookie, "Isthmus-Client: 1")
	testkit.Equal(t, ask(h, "GET /read", "", "", cookie).Code, 401, "after logging out")
	w = ask(h, "POST /v1/login", "", string(body), "Content-Type: application/json", "Isthmus-Client: 1")
	cookie = "Cookie: isthmus=" + w.Result().Cookies()[0].Value
	g.Configure(&config.API{})
	testkit.Equal(t, ask(h, "GET /read", "", "", cookie).Code, 401, "after its token was taken out")
}

// A form's wrong token leads to the page's text for it, and too many of them to its other text.
func TestWrongTokenInAForm(t *testing.T) {
	_, h, _, _ := guarded(t)
	form := []string{"Content-Type: application/x-www-form-urlencoded", "Origin: https://127.0.0.1:9443"}
	var last string
	for i := range 2 * failuresAllowed {
		w := ask(h, "POST /v1/login", "", "token=isthmus_x", form...)
		last = w.Header().Get("Location")
		testkit.ErrorIf(t, w.Code != 303 || i == 0 && last != "/login#unknown", "%d: %d %s", i, w.Code, last)
		testkit.Equal(t, len(w.Result().Cookies()), 0, "cookies")
		testkit.ErrorIf(t, strings.Contains(w.Body.String(), "error"), "%s", w.Body)
	}
	testkit.Equal(t, last, "/login#often", "after many")
}

// Signing out ends the streams of the same login's tabs, and no others.
func TestLogoutEndsStreams(t *testing.T) {
	g, h, read, _ := guarded(t)
	body, _ := json.Marshal(Given{read})
	login := func() string {
		w := ask(h, "POST /v1/login", "", string(body), "Content-Type: application/json")
		return "Cookie: isthmus=" + w.Result().Cookies()[0].Value
	}
	mine, other := login(), login()
	ended := make(chan string, 2)
	for _, cookie := range []string{mine, other} {
		go func() {
			ask(h, "GET /stream", "", "", cookie)
			ended <- cookie
		}()
	}
	streams := func() int {
		g.open.lock.Lock()
		defer g.open.lock.Unlock()
		return len(g.open.by)
	}
	testkit.Until(t, "both streams", func() bool { return streams() == 2 })
	ask(h, "POST /v1/logout", "", "", mine, "Isthmus-Client: 1")
	testkit.Equal(t, <-ended, mine, "stream that ended")
	testkit.Equal(t, streams(), 1, "streams left")
	ask(h, "POST /v1/logout", "", "", other, "Isthmus-Client: 1")
	<-ended
}

// Endless logins of a token take no other token's login.
func TestLoginsAreFair(t *testing.T) {
	var l logins
	kept := l.add(config.Token{Name: "quiet"})
	for range 2 * maxLogins {
		l.add(config.Token{Name: "loud"})
	}
	testkit.ErrorIf(t, l.find(kept) == nil || len(l.by) != maxLogins, "%d logins", len(l.by))
}

func TestLoginsAreBounded(t *testing.T) {
	var l logins
	first := l.add(config.Token{Name: "a"})
	for range 3 * maxLogins {
		l.add(config.Token{Name: "a"})
	}
	testkit.ErrorIf(t, len(l.by) != maxLogins || l.find(first) != nil, "%d logins", len(l.by))
	last := l.add(config.Token{Name: "b"})
	testkit.ErrorIf(t, l.find(last) == nil || l.find(last+"x") != nil, "the last one is not found")
	l.by[sha256.Sum256([]byte(last))].until = time.Now().Add(-time.Second)
	testkit.ErrorIf(t, l.find(last) != nil, "it is found after its time")
}

// Bad tokens by the million: bounded memory and events, a bound on the time of each; a good one is served.
func TestGuessing(t *testing.T) {
	g, h, read, _ := guarded(t)
	const far = "198.51.100.7:5000"
	codes := map[int]int{}
	for range 20 {
		codes[ask(h, "GET /read", far, "", "Authorization: Bearer isthmus_no").Code]++
	}
	testkit.Equal(t, fmt.Sprint(codes), "map[401:10 429:10]", "answers")
	testkit.Equal(t, ask(h, "GET /read", far, "", "Authorization: Bearer "+read).Code, 200,
		"a good token from there")
	cputest.Bound(t, 20*time.Second, "100,000 bad tokens from as many networks", func() {
		r := httptest.NewRequest("GET", "/read", nil)
		r.Header.Set("Authorization", "Bearer isthmus_"+strings.Repeat("x", 43))
		for i := range 100_000 {
			r.RemoteAddr = fmt.Sprintf("[2001:db8:%x:%x::1]:5000", i>>8, i&255)
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
	})
	testkit.ErrorIf(t, len(g.failures.by) > maxSources, "%d sources are remembered", len(g.failures.by))
	testkit.Equal(t, g.Refused(), 100_020, "counted")
	page, _ := g.log.Read("", 0, events.Filter{Kinds: []string{"access.refused"}})
	testkit.ErrorIf(t, len(page.Events) == 0 || len(page.Events) > 50, "%d events", len(page.Events))
}

// Guessers wait; a client that hangs up does not hold the guard.
func TestGuessersWait(t *testing.T) {
	g, h, _, _ := guarded(t)
	g.pause = time.Hour
	for range failuresAllowed {
		ask(h, "GET /read", "", "", "Authorization: Bearer no")
	}
	r := httptest.NewRequest("GET", "/read", nil)
	r.Header.Set("Authorization", "Bearer no")
	r.RemoteAddr = "127.0.0.1:40001"
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan bool)
	go func() {
		h.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
		close(ended)
	}()
	select {
	case <-ended:
		t.Fatal("answered at once")
	case <-time.After(20 * time.Millisecond):
	}
	cancel()
	<-ended
}

// The time of a refusal does not depend on how much of a token is right: all hashes are compared.
func TestFind(t *testing.T) {
	var tokens []config.Token
	var texts []string
	for range 64 {
		text, hash := Make()
		texts, tokens = append(texts, text), append(tokens, config.Token{SHA256: hash})
	}
	for i, text := range texts {
		testkit.ErrorIf(t, find(tokens, text) != &tokens[i], "token %d", i)
	}
	testkit.ErrorIf(t, find(tokens, "") != nil || find(nil, texts[0]) != nil || find(tokens, texts[0]+"x") != nil,
		"found")
}

func TestPeer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	testkit.Must(t, err)
	defer l.Close()
	go net.Dial("unix", path)
	c, err := l.Accept()
	testkit.Must(t, err)
	defer c.Close()
	id := From(Peer(t.Context(), c))
	testkit.ErrorIf(t, id.Role != Operate || id.Who.PID != int32(os.Getpid()) ||
		id.Who.UID != uint32(os.Getuid()) ||
		id.Who.Program == "", "%+v", id.Who)
}

func TestCertificate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	made, err := Certificate(dir+"/a.crt", dir+"/a.key", true, []string{"localhost", "192.0.2.1", "2001:db8::1"})
	testkit.Must(t, err)
	again, err := Certificate(dir+"/a.crt", dir+"/a.key", true, nil)
	testkit.Must(t, err)
	testkit.Equal(t, Fingerprint(again.Leaf.Raw), Fingerprint(made.Leaf.Raw), "fingerprint at the next start")
	info, err := os.Stat(dir + "/a.key")
	testkit.Must(t, err)
	testkit.ErrorIf(t, info.Mode().Perm() != 0o600 || made.Leaf.VerifyHostname("192.0.2.1") != nil, "%v",
		info.Mode())
	_, err = Certificate(dir+"/b.crt", dir+"/b.key", false, nil)
	testkit.Refused(t, err, "no such file")
	testkit.Must(t, os.WriteFile(dir+"/a.key", []byte("nonsense"), 0o600))
	_, err = Certificate(dir+"/a.crt", dir+"/a.key", true, nil)
	testkit.ErrorIf(t, err == nil, "a broken key was replaced")
}

// FuzzGuard: for any head of a request, no panic, and no change without a token.
func FuzzGuard(f *testing.F) {
	_, h, _, _ := guarded(f)
	f.Add("POST", "/change", "127.0.0.1", "Bearer x", "https://127.0.0.1", "same-origin", "application/json",
		"isthmus=x")
	f.Add("GET", "/read", "[::1", "Bearer", "null", "cross-site", "", "a=b; isthmus=\"")
	f.Add("POST", "/v1/login", "localhost:", "", "://", "", "application/x-www-form-urlencoded; x=", "")
	f.Fuzz(func(t *testing.T, method, path, host, authorization, origin, site, media, cookie string) {
		r, err := http.NewRequest(method, "http://x/", strings.NewReader("token=x"))
		if err != nil {
			return
		}
		r.URL.Path, r.Host, r.RemoteAddr = "/"+strings.TrimPrefix(path, "/"), host, "127.0.0.1:1"
		for name, value := range map[string]string{"Authorization": authorization, "Origin": origin,
			"Sec-Fetch-Site": site,
			"Content-Type":   media, "Cookie": cookie} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, at(r, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}))
		testkit.FatalIf(t, w.Code == 200 && (r.URL.Path == "/change" || r.URL.Path == "/read"), "%s %s: %s",
			method, path, w.Body)
	})
}

// A client cannot get more places by another port, host of its network, process or login.
func TestHolder(t *testing.T) {
	for _, test := range []struct {
		who    events.Who
		holder string
	}{
		{events.Who{Via: "tcp", Token: "noc", Address: "192.0.2.1:7"}, "token noc"},
		{events.Who{Via: "unix", UID: 1000, PID: 7}, "user 1000"},
		{events.Who{Via: "tcp", Address: "192.0.2.1:7"}, "192.0.2.1/32"},
		{events.Who{Via: "tcp", Address: "[2001:db8:0:1::7]:9"}, "2001:db8:0:1::/64"},
	} {
		testkit.Equal(t, Identity{Who: &test.who}.Holder(), test.holder, "holder")
	}
}
