// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// writePcap writes the messages as UDP datagrams to and from a port.
func writePcap(t testing.TB, port uint16, messages [][]byte) string {
	t.Helper()
	const rawIPv4 = 228 // LINKTYPE_IPV4
	le, be := binary.LittleEndian, binary.BigEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = le.AppendUint32(b, 2|4<<16)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(b, 1<<18)
	b = le.AppendUint32(b, rawIPv4)
	for i, m := range messages {
		n := 28 + len(m)
		b = le.AppendUint32(b, 1764000000)
		b = le.AppendUint32(b, uint32(i))
		b = le.AppendUint32(b, uint32(n))
		b = le.AppendUint32(b, uint32(n))
		ip := be.AppendUint32([]byte{0x45, 0}, uint32(n)<<16)
		ip = append(ip, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2)
		sum := uint32(0)
		for j := 0; j < len(ip); j += 2 {
			sum += uint32(be.Uint16(ip[j:]))
		}
		sum = sum>>16 + sum&0xffff
		be.PutUint16(ip[10:], ^uint16(sum+sum>>16))
		b = append(b, ip...)
		b = be.AppendUint16(b, port)
		b = be.AppendUint16(b, port)
		b = be.AppendUint32(b, uint32(8+len(m))<<16)
		b = append(b, m...)
	}
	path := filepath.Join(t.TempDir(), "messages.pcap")
	Must(t, os.WriteFile(path, b, 0o600))
	return path
}

// Dissect has tshark read messages of a UDP port: every field of each, expert remarks among them. It skips the test
// where there is no tshark.
func Dissect(t testing.TB, port uint16, messages [][]byte, options ...string) []map[string]any {
	t.Helper()
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	arguments := []string{"-r", writePcap(t, port, messages), "-T", "json", "--no-duplicate-keys"}
	command := exec.Command(program, append(arguments, options...)...)
	command.Env = append(os.Environ(), "HOME="+t.TempDir())
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("tshark: %v %s", err, complaints.Bytes())
	}
	var packets []struct {
		Source struct{ Layers map[string]any } `json:"_source"`
	}
	Must(t, json.Unmarshal(out, &packets))
	var list []map[string]any
	for _, p := range packets {
		list = append(list, p.Source.Layers)
	}
	return list
}

// Remarks finds what tshark did not like or did not know.
func Remarks(at string, v any) (list []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			low := strings.ToLower(key)
			for _, bad := range []string{"malformed", "_ws.expert", "unknown", "not_decoded", "undecoded"} {
				if strings.Contains(low, bad) {
					text, _ := json.Marshal(inner)
					list = append(list, at+" "+key+" "+string(text))
				}
			}
			list = append(list, Remarks(at+"/"+key, inner)...)
		}
	case []any:
		for _, inner := range v {
			list = append(list, Remarks(at, inner)...)
		}
	case string:
		low := strings.ToLower(v)
		if strings.Contains(low, "unknown") || strings.Contains(low, "not dissected") || strings.Contains(low,
			"malformed") {
			list = append(list, at+" "+v)
		}
	}
	return list
}
