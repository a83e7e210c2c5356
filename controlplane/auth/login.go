// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"isthmus/controlplane/config"
)

// LoginPath takes a token from a browser's form, or as JSON {"token": …}, and answers with a cookie.
const LoginPath = "/v1/login"

// LogoutPath ends the life of a browser's cookie.
const LogoutPath = "/v1/logout"

// Given is the body of a login.
type Given struct {
	Token string `json:"token"`
}

const (
	cookieName   = "isthmus"
	loginTime    = 12 * time.Hour
	maxLogins    = 256 // the oldest of the token that has most makes room
	maxLoginBody = 1 << 10
)

type cookieHash [sha256.Size]byte

type login struct {
	token config.Token
	until time.Time
}

// logins are the cookies that are good. The zero value is ready.
type logins struct {
	lock sync.Mutex
	by   map[cookieHash]*login
}

func (l *logins) find(cookie string) *login {
	if len(cookie) > maxToken {
		return nil
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	// Looked up by its hash: timing reveals nothing useful.
	in := l.by[sha256.Sum256([]byte(cookie))]
	if in == nil || time.Now().After(in.until) {
		return nil
	}
	return in
}

func (l *logins) add(t config.Token) (cookie string) {
	var b [32]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	cookie = base64.RawURLEncoding.EncodeToString(b[:])
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.by == nil {
		l.by = map[cookieHash]*login{}
	}
	if len(l.by) >= maxLogins {
		l.makeRoom()
	}
	l.by[sha256.Sum256([]byte(cookie))] = &login{t, time.Now().Add(loginTime)}
	return cookie
}

func (l *logins) makeRoom() {
	count, most := map[config.Token]int{}, 0
	for _, in := range l.by {
		count[in.token]++
		most = max(most, count[in.token])
	}
	var oldest cookieHash
	var first time.Time
	for h, in := range l.by {
		if count[in.token] == most && (first.IsZero() || in.until.Before(first)) {
			oldest, first = h, in.until
		}
	}
	delete(l.by, oldest)
}

// remove returns the login that the cookie had, nil when it had none.
func (l *logins) remove(cookie string) *login {
	l.lock.Lock()
	defer l.lock.Unlock()
	h := cookieHash(sha256.Sum256([]byte(cookie)))
	in := l.by[h]
	delete(l.by, h)
	return in
}

// keep ends the logins of tokens that are not there any more.
func (l *logins) keep(tokens []config.Token) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for h, in := range l.by {
		if !slices.Contains(tokens, in.token) {
			delete(l.by, h)
		}
	}
}

// Where the page of the form shows why sign-in failed.
const (
	loginUnknown = "/login#unknown"
	loginOften   = "/login#often"
)

// formAnswer is the answer to a browser's form: in place of a refusal, the page with its text.
type formAnswer struct {
	http.ResponseWriter
	r *http.Request
}

// WriteHeader is of http.ResponseWriter.
func (f *formAnswer) WriteHeader(status int) {
	to := loginUnknown
	if status == http.StatusTooManyRequests {
		to = loginOften
	}
	f.Header().Del("Content-Type")
	http.Redirect(f.ResponseWriter, f.r, to, http.StatusSeeOther)
}

// Write is of http.ResponseWriter.
func (f *formAnswer) Write(b []byte) (int, error) { return len(b), nil }

// Login exchanges a token for a cookie that scripts cannot read and other sites cannot send. A form is redirected to
// the page.
func (g *Guard) Login(w http.ResponseWriter, r *http.Request) {
	token, form, err := givenToken(w, r)
	t := find(g.settings.Load().Tokens, token)
	if err != nil || t == nil {
		if form {
			w = &formAnswer{ResponseWriter: w, r: r}
		}
		g.turnAway(w, r, http.StatusUnauthorized, unknownToken)
		return
	}
	http.SetCookie(w, cookie(r, g.logins.add(*t), int(loginTime.Seconds())))
	if form {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	answerIdentity(w, Identity{Role: roleOf(t.Role)}, string(t.Name))
}

func givenToken(w http.ResponseWriter, r *http.Request) (token string, form bool, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginBody)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		err = r.ParseForm()
		return strings.TrimSpace(r.PostForm.Get("token")), true, err
	}
	body, err := io.ReadAll(r.Body)
	var given Given
	if err == nil {
		err = json.Unmarshal(body, &given)
	}
	return strings.TrimSpace(given.Token), false, err
}

// Logout ends the login, and the streams of all its tabs.
func (g *Guard) Logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName); err == nil {
		if in := g.logins.remove(c.Value); in != nil {
			g.open.end(&in.token)
		}
	}
	http.SetCookie(w, cookie(r, "", -1))
	answerIdentity(w, Identity{}, "")
}

func cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: "/", MaxAge: age, HttpOnly: true,
		Secure:   r.TLS != nil,
		SameSite: http.SameSiteStrictMode}
}

// Self is the answer of WhoAmI and Login.
type Self struct {
	Role  Role   `json:"role"`
	Token string `json:"token"` // its name; empty: none was shown
}

// WhoAmI returns what a client may do.
func WhoAmI(w http.ResponseWriter, r *http.Request) {
	id := From(r.Context())
	answerIdentity(w, id, id.Token())
}

func answerIdentity(w http.ResponseWriter, id Identity, token string) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(Self{id.Role, token})
}
