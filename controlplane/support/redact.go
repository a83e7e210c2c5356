// SPDX-License-Identifier: Apache-2.0

package support

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// removed stands in a secret's place.
const removed = "REMOVED"

// Names distinguishes users within one archive, and in no other: it replaces a name by its hash under a key that is not
// kept.
type Names struct {
	key   [32]byte
	mu    sync.Mutex // a part that exceeds its time continues beside others
	known map[string]string
	odd   []string // of these, those that are several words
}

// NewNames is for one archive.
func NewNames() *Names {
	n := &Names{known: map[string]string{}}
	rand.Read(n.key[:]) // never fails (crypto/rand)
	return n
}

// Hide is what stands for a name.
func (n *Names) Hide(name string) string {
	if name == "" {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known[name] == "" {
		if core := strings.TrimRight(name, ".:"); word.FindString(name) != name || core != name {
			n.odd = append(n.odd, name)
		}
		sum := hmac.New(sha256.New, n.key[:])
		sum.Write([]byte(name))
		n.known[name] = "user-" + hex.EncodeToString(sum.Sum(nil)[:6])
	}
	return n.known[name]
}

// JSON removes by the type of what was encoded. Fields with the tag private:"name" are names of users; private:"text"
// is free text of others; private:"words" is ours, which may contain names that the archive has met. Values of unknown
// keys and passwords in URLs are removed too.
func (n *Names) JSON(data []byte, of reflect.Type) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, fmt.Errorf("left out, for it is no JSON: %w", err)
	}
	return json.MarshalIndent(n.value(v, of, ""), "", " ")
}

func (n *Names) value(v any, t reflect.Type, private string) any {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			of, how := field(t, key)
			v[key] = n.value(child, of, how)
		}
	case []any:
		for i := range v {
			v[i] = n.value(v[i], elem(t), private)
		}
	case string:
		switch {
		case v == "":
		case t == nil || private == "text":
			return removed
		case private == "name":
			return n.Hide(v)
		case private == "words":
			return string(n.line([]byte(v)))
		}
		return inURL.ReplaceAllString(v, "${1}"+removed+"@")
	}
	return v
}

func elem(t reflect.Type) reflect.Type {
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map) {
		return t.Elem()
	}
	return nil
}

// field finds a key's type, and whether the value is private; nil: it is not known.
func field(t reflect.Type, key string) (of reflect.Type, private string) {
	if t == nil || t.Kind() != reflect.Struct {
		return elem(t), ""
	}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == key {
			return f.Type, f.Tag.Get("private")
		}
	}
	return nil, ""
}

// Keys of a log whose last word is one of these are secrets, whatever wrote it.
var (
	secretWords = []string{"password", "passwd", "passphrase", "secret", "secrets", "token", "tokens", "credential",
		"credentials", "psk", "authorization", "imsi", "msisdn", "nai", "key", "keys", "community"}

	wordBreak  = regexp.MustCompile(`[_\-. ]+|([a-z])([A-Z])`)
	inURL      = regexp.MustCompile(`(://)[^/@\s"']+@`)
	bearer     = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}`)
	assignment = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.-]*)"?(\s*[=:]\s*)("(?:[^"\\]|\\.)*"|[^\s",;}]+)`)

	// Our logs have names of users at the key user. Harmless values are numbers, addresses, times, and no words.
	ofUser   = regexp.MustCompile(`\buser"?[=:]`)
	harmless = regexp.MustCompile(`^"?(?:[0-9][0-9A-Za-z.:/+-]*|[0-9a-fA-F:.]+|true|false|\{)"?$`)
	ofALine  = []string{"time", "level", "msg"}
	word     = regexp.MustCompile(`[^\s"'=,;(){}\[\]<>\\]+`)
)

// Text removes from lines of a log the values of keys with a secret's name, tokens, and passwords in URLs. It also
// removes names of users that are logged as such, with the words beside them, and those that the archive has met.
func (n *Names) Text(text []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		out.Write(n.line(line))
	}
	return out.Bytes()
}

func (n *Names) line(line []byte) []byte {
	line = inURL.ReplaceAll(line, []byte("${1}"+removed+"@"))
	line = bearer.ReplaceAll(line, []byte("${1} "+removed))
	user := ofUser.Match(line)
	line = assignment.ReplaceAllFunc(line, func(found []byte) []byte {
		part := assignment.FindSubmatch(found)
		key, value := string(part[1]), string(part[3])
		words := strings.Fields(strings.ToLower(wordBreak.ReplaceAllString(key, "$1 $2")))
		put := ""
		switch last := words[len(words)-1]; {
		case slices.ContainsFunc(words, func(w string) bool { return slices.Contains(secretWords, w) }):
			put = removed
		case last == "user":
			put = n.Hide(unquoted(value))
		case user && !slices.Contains(ofALine, key) && !harmless.MatchString(value):
			put = removed
		default:
			return found
		}
		return append(found[:len(found)-len(part[3]):len(found)-len(part[3])], put...)
	})
	return n.words(line)
}

// words replaces names that the archive has met.
func (n *Names) words(text []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	text = word.ReplaceAllFunc(text, func(found []byte) []byte {
		core := bytes.TrimRight(found, ".:")
		if put, met := n.known[string(core)]; met {
			return append([]byte(put), found[len(core):]...)
		}
		return found
	})
	for _, name := range n.odd {
		text = bytes.ReplaceAll(text, []byte(name), []byte(n.known[name]))
	}
	return text
}

func unquoted(value string) string {
	if text, err := strconv.Unquote(value); err == nil {
		return text
	}
	return value
}
