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

type server struct {
	Address string            `yaml:"address"`
	Shared  string            `yaml:"shared" secret:"true"`
	Labels  map[string]string `yaml:"labels"`
}

type settings struct {
	Servers []*server `yaml:"servers"`
	PIN     []int     `yaml:"pin,omitempty" secret:"true"`
}

func TestConfigWithoutSecrets(t *testing.T) {
	text := `# password: comment1
servers: # comment2
  - {address: 10.0.0.1, shared: hush1, labels: {colour: red, api_token: hush2}}
  - address: https://bob:hush3@example.net/
    # comment3
    shared: &anchor hush4
    copy: *anchor
pin: [12345, 67890]
unknown:
  tls: {certificate: /etc/cert.pem, privateKey: hush5, PSK: hush6, monkey: banana, keys: [hush7], password: }
`
	out, err := Config([]byte(text), reflect.TypeFor[settings]())
	testkit.Must(t, err)
	for _, word := range []string{"hush", "comment", "12345", "67890"} {
		testkit.ErrorIf(t, bytes.Contains(out, []byte(word)), "%s is left in\n%s", word, out)
	}
	for _, word := range []string{"10.0.0.1", "red", "https://REMOVED@example.net/", "/etc/cert.pem", "banana"} {
		testkit.ErrorIf(t, !bytes.Contains(out, []byte(word)), "%s is lost in\n%s", word, out)
	}
	_, err = Config([]byte("a: [secret"), reflect.TypeFor[settings]())
	testkit.Refused(t, err, "left out")
}

func TestJSONWithoutSecrets(t *testing.T) {
	out, err := JSON([]byte(`[{"name":"s1","user":"imsi-001","seid":18446744073709551615,
		"auth":{"token":"t1","n":3},"url":"http://a:b@c/"}]`))
	testkit.Must(t, err)
	for _, word := range []string{"imsi-001", `"t1"`, "a:b@"} {
		testkit.ErrorIf(t, bytes.Contains(out, []byte(word)), "%s is left in\n%s", word, out)
	}
	testkit.ErrorIf(t, !bytes.Contains(out, []byte("18446744073709551615")), "a number changed:\n%s", out)
	_, err = JSON([]byte("<html>"))
	testkit.Refused(t, err, "no JSON")
}

func TestTextWithoutSecrets(t *testing.T) {
	for from, want := range map[string]string{
		`level=INFO password=hunter2 peer=smf1`:   `level=INFO password=REMOVED peer=smf1`,
		`{"api_key": "a\"b", "port": 3}`:          `{"api_key": REMOVED, "port": 3}`,
		`Authorization: Bearer abcdefghijkl.mno`:  `Authorization: REMOVED REMOVED`,
		`sent Bearer abcdefghijkl`:                `sent Bearer REMOVED`,
		`user="a b" session=n4.1`:                 `user=REMOVED session=n4.1`,
		`get ftp://me:pw@host/x`:                  `get ftp://REMOVED@host/x`,
		`time=2026-01-01T00:00:00Z monkey=banana`: `time=2026-01-01T00:00:00Z monkey=banana`,
	} {
		testkit.Equal(t, string(Text([]byte(from))), want, "%s", from)
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
	data, err := Tail("log", path).Get(context.Background())
	testkit.Must(t, err)
	good := len(data) <= tailSize && bytes.HasSuffix(data, []byte("password=REMOVED\n"))
	testkit.ErrorIf(t, !good, "%d bytes", len(data))
	_, err = Tail("log", "/dev/null").Get(context.Background())
	testkit.Refused(t, err, "is no file")
	_, err = Command("x", "sh", "-c", "echo why >&2; exit 3").Get(context.Background())
	testkit.Refused(t, err, "exit status 3: why")
	data, err = Command("x", "sh", "-c", "echo token=abc").Get(context.Background())
	testkit.ErrorIf(t, err != nil || string(data) != "token=REMOVED\n", "%q %v", data, err)
}
