// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

func TestEncodeDecode(t *testing.T) {
	in := Header{Magic: Magic, Type: TypeCommit, Flags: FLast, Length: 7, Sequence: 9}
	b := Encode(&in)
	if want := []byte("ISTH\x05\x00\x01\x00\x07\x00\x00\x00\x09\x00\x00\x00"); !bytes.Equal(b, want) {
		t.Fatalf("got %x, want %x", b, want)
	}
	var out Header
	rest, err := Decode(append(b, 1, 2), &out)
	if err != nil || out != in || len(rest) != 2 {
		t.Fatalf("%v %+v rest %d", err, out, len(rest))
	}
	for n := range b {
		if _, err := Decode(b[:n], &out); err == nil {
			t.Fatalf("%d bytes were accepted", n)
		}
	}
	if rows, err := DecodeAll[Header](append(b, b...)); err != nil || len(rows) != 2 || rows[1] != in {
		t.Fatal(rows, err)
	}
	if _, err := DecodeAll[Header](b[:15]); err == nil {
		t.Fatal("a broken array was accepted")
	}
}

// Nothing may alter the memory image: the sizes that the C compiler saw are those of the Go types.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name    string
		go_, c_ uintptr
	}{
		{"Session", unsafe.Sizeof(Session{}), SizeofSession},
		{"PDR", unsafe.Sizeof(PDR{}), SizeofPDR},
		{"FAR", unsafe.Sizeof(FAR{}), SizeofFAR},
		{"QER", unsafe.Sizeof(QER{}), SizeofQER},
		{"Scheduler", unsafe.Sizeof(Scheduler{}), SizeofScheduler},
		{"Synth", unsafe.Sizeof(Synth{}), SizeofSynth},
		{"SessionRow", unsafe.Sizeof(SessionRow{}), SizeofSessionRow},
	} {
		if c.go_ != c.c_ {
			t.Errorf("%s: %d bytes in Go, %d in C", c.name, c.go_, c.c_)
		}
	}
}

func TestDigestOf(t *testing.T) { // vectors of the FNV reference code
	for text, want := range map[string]uint64{
		"": 0xcbf29ce484222325, "a": 0xaf63dc4c8601ec8c, "foobar": 0x85944171f73967e8,
	} {
		if got := DigestOf([]byte(text)); got != want {
			t.Errorf("%q: %x, want %x", text, got, want)
		}
	}
	for n := range 64 { // zeros, which are counted by eight, at every place
		b := make([]byte, n)
		for _, at := range []int{-1, 0, n / 3, n - 1} {
			if clear(b); at >= 0 && n > 0 {
				b[at] = 7
			}
			want := uint64(fnvStart)
			for _, c := range b {
				want = (want ^ uint64(c)) * fnvPrime
			}
			if got := DigestOf(b); got != want {
				t.Errorf("%x: %x, want %x", b, got, want)
			}
		}
	}
}

func TestKeys(t *testing.T) {
	k, err := MakeKey("home-00001")
	if err != nil || CString(k[:]) != "home-00001" {
		t.Fatal(k, err)
	}
	for _, bad := range []string{"", strings.Repeat("x", 32), "a\x00b"} {
		if _, err := MakeKey(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if k := ShortKey("core|10.0.0.1"); CString(k[:]) != "core|10.0.0.1" {
		t.Error("a short text must stay readable")
	}
	if k := ShortKey(strings.Repeat("x", 32)); len(CString(k[:])) != 16 {
		t.Errorf("%q", CString(k[:]))
	}
	field := [4]byte{9, 9, 9, 9}
	if PutCString(field[:], "abcd") == nil || PutCString(field[:], "ab") != nil || field != [4]byte{'a', 'b'} {
		t.Errorf("%v", field)
	}
}

func TestAddresses(t *testing.T) {
	for _, text := range []string{"10.1.2.3/8", "2001:db8::1/64", "0.0.0.0/0", "::/0", "192.0.2.1/32"} {
		p := netip.MustParsePrefix(text)
		if got := FromPrefix(p).Netip(); got != p {
			t.Errorf("%s became %s", p, got)
		}
	}
	if FromAddr(netip.MustParseAddr("192.0.2.1")).String() != "192.0.2.1" {
		t.Error("host address")
	}
	if (FromAddr(netip.Addr{}) != Address{}) || (Address{Family: 4, Prefix: 33}).String() != "" {
		t.Error("no address")
	}
}

// The committed types match the header, and the released layout is unchanged.
func TestGenerated(t *testing.T) {
	if out, err := exec.Command("./check.sh").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The lock refuses a changed layout of the released version, and accepts additions and a raised version.
func TestLayoutLock(t *testing.T) {
	header, err := os.ReadFile("isthmus_api.h")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"check.sh", "godefs.py", "isthmus_api.h"} {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		put(f, string(data))
	}
	put("go.mod", "module api\n")
	put("types_gen.go", "")
	script := filepath.Join(dir, "check.sh")
	if out, err := exec.Command(script, "--release").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(old, new string) string { // the types are stale in each of these, which is not the question
		changed := strings.ReplaceAll(string(header), old, new)
		if changed == string(header) {
			t.Fatalf("the header has no %q", old)
		}
		put("isthmus_api.h", changed)
		out, err := exec.Command(script).CombinedOutput()
		if err == nil {
			t.Errorf("%q: stale types were not seen", new)
		}
		return string(out)
	}
	for _, c := range []struct{ old, new, want string }{
		{"uint64_t boot_id;", "uint32_t boot_id[2];\n\tuint64_t more;", "Raise API_VERSION"},
		{"API_ABORT = 9", "API_ABORT = 10", "Raise API_VERSION"},
		{"API_PDR_QFI 8u", "API_PDR_QFI 32u", "Raise API_VERSION"},
		{"uint16_t flags;", "uint8_t flags;", "padding"},
		{"uint64_t dropped_bytes; // the same in bytes\n", "uint64_t dropped_bytes;\n\tuint64_t " +
			"more;\n", ""}, // at the end of a part
		// stands in another
		{"first_ns, last_ns;", "first_ns, last_ns, more_ns;", "Raise API_VERSION"},
		{"struct api_urr {", "struct api_bar {\n\tuint32_t id;\n};\n\nstruct api_urr {", ""},
		{"#define API_VERSION ", "#define API_VERSION 9", ""}, // 1u becomes 91u
		{"#define API_VERSION 1u", "#define API_VERSION 0u", "API_VERSION 0 is below 1"},
	} {
		out := run(c.old, c.new)
		if !strings.Contains(out, c.want) || c.want == "" &&
			(strings.Contains(out, "Raise") || strings.Contains(out, "padding")) {
			t.Errorf("%q:\n%s", c.new, out)
		}
	}
}
