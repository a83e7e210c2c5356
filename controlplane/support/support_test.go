// SPDX-License-Identifier: Apache-2.0

package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

type row struct {
	Name string            `json:"name"`
	User string            `json:"user" private:"name"`
	Why  string            `json:"why" private:"text"`
	Last string            `json:"last" private:"words"`
	SEID uint64            `json:"seid"`
	URL  string            `json:"url"`
	More []*row            `json:"more"`
	By   map[string]string `json:"by"`
}

// An archive hides users by the types of its parts; an unknown field is removed.
func TestJSONByType(t *testing.T) {
	n := NewNames()
	out, err := n.JSON([]byte(`[{"name":"s1","user":"hush1","seid":18446744073709551615,"why":"hush2 is wrong",
		"url":"http://a:hush3@c/","anew":{"x":["hush4"]},"more":[{"user":"hush1"},{"user":"hush5","last":""}],
		"by":{"k":"v"}}]`), reflect.TypeFor[[]row]())
	testkit.Must(t, err)
	testkit.ErrorIf(t, bytes.Contains(out, []byte("hush")), "%s", out)
	one, other := n.Hide("hush1"), n.Hide("hush5")
	testkit.ErrorIf(t, one == other || bytes.Count(out, []byte(one)) != 2 || !bytes.Contains(out, []byte(other)),
		"%s %s\n%s", one, other, out)
	for _, kept := range []string{"18446744073709551615", `"s1"`, `"k": "v"`} {
		testkit.ErrorIf(t, !bytes.Contains(out, []byte(kept)), "%s is lost:\n%s", kept, out)
	}
	out, err = n.JSON([]byte(`{"last":"user \"hush1\" of n6"}`), reflect.TypeFor[row]())
	testkit.ErrorIf(t, err != nil || !bytes.Contains(out, []byte(`user \"`+one+`\" of n6`)), "%s %v", out, err)
	testkit.ErrorIf(t, NewNames().Hide("hush1") == one, "the same in two archives")
	_, err = n.JSON([]byte("<html>"), nil)
	testkit.Refused(t, err, "no JSON")
}

func TestTextWithoutSecrets(t *testing.T) {
	n := NewNames()
	u, odd := n.Hide("anna"), n.Hide("isp\\bert b")
	const begin = `Nov 29 gw isthmus[7]: time=2026-01-01T00:00:00Z level=WARN msg="it is refused" `
	for from, want := range map[string]string{
		`level=INFO password=hunter2 peer=smf1`:    `level=INFO password=REMOVED peer=smf1`,
		`{"api_key": "a\"b", "port": 3}`:           `{"api_key": REMOVED, "port": 3}`,
		`Authorization: Bearer abcdefghijkl.mno`:   `Authorization: REMOVED REMOVED`,
		`sent Bearer abcdefghijkl`:                 `sent Bearer REMOVED`,
		`get ftp://me:pw@host/x`:                   `get ftp://REMOVED@host/x`,
		`time=2026-01-01T00:00:00Z monkey=banana`:  `time=2026-01-01T00:00:00Z monkey=banana`,
		`error="aaa.users[1]: \"anna\" twice" n=1`: `error="aaa.users[1]: \"` + u + `\" twice" n=1`,
		`hannah, anna: annas`:                      `hannah, ` + u + `: annas`,
		`of isp\bert b here`:                       `of ` + odd + ` here`,
		begin + `user=anna session=00ab cause=503 why="as carl said" seid=0x1f`: begin + `user=` + u +
			` session=00ab cause=503 why=REMOVED seid=0x1f`,
		`{"level":"WARN","msg":"no","user":"anna","error":"carl","n":3}`: `{"level":"WARN","msg":"no","user":` +
			u + `,"error":REMOVED,"n":3}`,
	} {
		testkit.Equal(t, string(n.Text([]byte(from))), want, "%s", from)
	}
}

// open reads an archive back.
func open(t *testing.T, data []byte) map[string]string {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(data))
	testkit.Must(t, err)
	files := map[string]string{}
	for archive := tar.NewReader(unpacked); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		testkit.Must(t, err)
		body, err := io.ReadAll(archive)
		testkit.Must(t, err)
		files[h.Name] = string(body)
	}
}

func TestArchiveIsBounded(t *testing.T) {
	part := func(name string, size int, err error) Part {
		return Part{name, func(context.Context) ([]byte, error) { return make([]byte, size), err }}
	}
	parts := []Part{part("good", 3, nil), part("none", 0, errors.New("gone")), part("half", 2, errors.New("broke")),
		part("long", partSize+1, nil)}
	for range wholeSize / partSize {
		parts = append(parts, part("filler", partSize, nil))
	}
	var out bytes.Buffer
	outcomes, err := Write(context.Background(), &out, "x", time.Unix(1e9, 0), parts)
	testkit.Must(t, err)
	files := open(t, out.Bytes())
	testkit.Equal(t, len(files["x/good"]), 3, "good")
	testkit.Equal(t, len(files["x/long"]), partSize, "long")
	for _, line := range []string{"here     good, 3 bytes", "missing  none: gone", "in part  half: broke",
		"cut      long", "missing  filler: the archive is full"} {
		testkit.ErrorIf(t, !strings.Contains(files["x/MANIFEST"], line) && !strings.Contains(line, "filler"),
			"the manifest lacks %q:\n%s", line, files["x/MANIFEST"])
	}
	sum := 0
	for _, o := range outcomes {
		sum += o.Bytes
	}
	testkit.ErrorIf(t, sum > wholeSize, "%d bytes", sum)
}

// A part that never answers costs its time, not the archive; after the whole's time the rest is named as missing.
func TestArchiveDoesNotWait(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	stuck := make(chan struct{})
	defer close(stuck)
	var out bytes.Buffer
	outcomes, err := Write(ctx, &out, "x", time.Unix(1e9, 0), []Part{
		{"stuck", func(context.Context) ([]byte, error) { <-stuck; return nil, nil }},
		{"late", func(context.Context) ([]byte, error) { return []byte("x"), nil }},
	})
	testkit.Must(t, err)
	for _, o := range outcomes {
		testkit.ErrorIf(t, !errors.Is(o.Err, context.DeadlineExceeded), "%s", o)
	}
}

func TestTailAndCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	testkit.Must(t, os.WriteFile(path, []byte(strings.Repeat("x", tailSize)+"\npassword=hunter2\n"), 0o600))
	n := NewNames()
	data, err := n.Tail("log", path).Get(context.Background())
	testkit.Must(t, err)
	good := len(data) <= tailSize && bytes.HasSuffix(data, []byte("password=REMOVED\n"))
	testkit.ErrorIf(t, !good, "%d bytes", len(data))
	_, err = n.Tail("log", "/dev/null").Get(context.Background())
	testkit.Refused(t, err, "is no file")
	_, err = n.Command("x", "sh", "-c", "echo why >&2; exit 3").Get(context.Background())
	testkit.Refused(t, err, "exit status 3: why")
	data, err = n.Command("x", "sh", "-c", "echo token=abc").Get(context.Background())
	testkit.ErrorIf(t, err != nil || string(data) != "token=REMOVED\n", "%q %v", data, err)
}
