// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/binary"
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

	"isthmus/controlplane/testkit"
	"isthmus/controlplane/trace"
)

// tracer is a control plane whose traces have the packets that it is given. *asked is the last query.
func tracer(t *testing.T, asked *trace.Query, packets ...trace.Packet) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	testkit.Must(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/config":
			w.Write([]byte("ports: []\n"))
		case "/v1/show/port":
			w.Write([]byte(`[{"name":"n3","mac":"02:00:00:00:00:03"}]`))
		default:
			*asked = trace.Query{}
			testkit.Must(t, json.NewDecoder(r.Body).Decode(asked))
			lines := json.NewEncoder(w)
			for i := range packets {
				lines.Encode(trace.Update{Packets: packets[i : i+1]})
			}
			lines.Encode(trace.Update{State: trace.State{Ended: "time", Packets: uint64(len(packets))}})
		}
	}))
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	return path
}

// packet has a frame of so many octets, whose number they are.
func packet(number uint32, octets int) trace.Packet {
	at := time.Unix(1000, int64(number))
	return trace.Packet{Number: number, Time: at, Port: "n3", Length: uint32(octets), Outcome: "sent",
		OutPort: "n6",
		Steps:   []trace.Step{{Node: "ip-input", Next: "ip-output", Worker: 3, Text: "for us"}},
		Frames: []trace.Frame{{Stage: "received", Port: "n3", Time: at, Length: uint32(octets),
			Bytes: bytes.Repeat([]byte{byte(number)}, octets)}}}
}

// What each flag asks for, of trace and capture alike.
func TestTraceAsksFor(t *testing.T) {
	var asked trace.Query
	socket := tracer(t, &asked)
	for _, c := range []struct {
		args string
		want trace.Query
	}{
		{"trace --subscriber home-17", trace.Query{Subscriber: "home-17", Seconds: 30}},
		{"trace --session n4.1 --for 5s", trace.Query{Session: "n4.1", Seconds: 5}},
		{"trace --teid 0x100", trace.Query{TEID: 256, Seconds: 30}},
		{"trace --teid 7 --port n3", trace.Query{TEID: 7, Port: "n3", Seconds: 30}},
		{"trace --rate 50 --sample 10 --count 4", trace.Query{Rate: 50, Sample: 10, Count: 4, Seconds: 30}},
		{"trace --ue 10.45.0.0/24 --drop any --until-drop",
			trace.Query{UE: "10.45.0.0/24", Drop: "any", UntilDrop: true, Seconds: 30}},
		{"trace --flow udp,10.45.0.2:4000,[2001:db8::1]:53 --filter ip",
			trace.Query{UE: "10.45.0.2", Seconds: 30,
				Filter: "(ip) and udp and ((src host 10.45.0.2 and src port 4000 and " +
					"dst host 2001:db8::1 and dst port 53)" +
					" or (src host 2001:db8::1 and src port 53 and " +
					"dst host 10.45.0.2 and dst port 4000))"}},
		{"capture -w - --snap 64 --for 90s --stage rx,decap,tx",
			trace.Query{Snap: 64, Seconds: 90, Stages: []string{"received", "inside", "sent"}}},
	} {
		code, out, stderr := run(t, "", append([]string{"--socket", socket}, strings.Fields(c.args)...)...)
		testkit.ErrorIf(t, code != 0, "%s: %d %s %s", c.args, code, out, stderr)
		testkit.Equal(t, fmt.Sprintf("%+v", asked), fmt.Sprintf("%+v", c.want), "%s", c.args)
	}
	for args, want := range map[string]string{
		"trace --teid 0":                       "is no TEID",
		"trace --teid x":                       "is no TEID",
		"trace --for 2h":                       "give 1s to 1h",
		"trace --for 10ms":                     "give 1s to 1h",
		"trace --session a --subscriber b":     "not both",
		"trace --flow tcp,1.2.3.4:5":           "is not PROTOCOL",
		"trace --flow gre,1.2.3.4:5,1.2.3.4:5": "tcp, udp or sctp",
		"trace --flow tcp,1.2.3.4,1.2.3.4:5":   "its ends are",
		"capture -w - --files 3":               "--files needs",
		"capture -w x --size 0 --files 3":      "--files needs",
		"capture -w x --files 0":               "--files 1 to",
		"capture -w x --size -1":               "--size is 0 or more",
	} {
		code, _, stderr := run(t, "", append([]string{"--socket", socket}, strings.Fields(args)...)...)
		testkit.ErrorIf(t, code == 0 || !strings.Contains(stderr, want), "%s: %d %s, not %q", args, code,
			stderr, want)
	}
}

func TestTracePrints(t *testing.T) {
	var asked trace.Query
	socket := tracer(t, &asked, packet(1, 60), packet(2, 70))
	_, out, _ := run(t, "", "--socket", socket, "trace")
	testkit.ErrorIf(t, strings.Count(out, "  = sent on n6\n") != 2 || !strings.Contains(out, "\n  ip-input "),
		"text:\n%s", out)
	_, out, _ = run(t, "", "--socket", socket, "trace", "--workers")
	testkit.ErrorIf(t, strings.Count(out, "\n  3 ip-input ") != 2, "with workers:\n%s", out)
	_, out, _ = run(t, "", "--socket", socket, "trace", "-j")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	testkit.Equal(t, len(lines), 2, "lines of JSON")
	for i, line := range lines {
		var p trace.Packet
		testkit.Must(t, json.Unmarshal([]byte(line), &p))
		testkit.Equal(t, p.Number, uint32(i+1), "packet")
		testkit.Equal(t, p.Steps[0].Worker, uint8(3), "worker")
	}
}

// framesOf reads a capture's frames by their numbers, and checks that each is whole.
func framesOf(t *testing.T, data []byte) (numbers []int) {
	t.Helper()
	testkit.Must(t, trace.ReadFrames(bytes.NewReader(data), func(port string, _ time.Time, frame []byte) error {
		testkit.Equal(t, port, "n3", "port")
		testkit.ErrorIf(t, bytes.Count(frame, frame[:1]) != len(frame), "frame %d is mixed up", frame[0])
		numbers = append(numbers, int(frame[0]))
		return nil
	}))
	return numbers
}

const large = 1<<20 - 2000 // one frame, a header and the next frame begin another file of 1 MB

func TestCaptureToStandardOutput(t *testing.T) {
	var asked trace.Query
	socket := tracer(t, &asked, packet(1, 60), packet(2, 9000))
	code, out, stderr := run(t, "", "--socket", socket, "capture", "-w", "-", "--snap", "9100")
	testkit.ErrorIf(t, code != 0 || stderr != "2 packets\n", "%d %s", code, stderr)
	testkit.Equal(t, fmt.Sprint(framesOf(t, []byte(out))), "[1 2]", "frames")
	// The first interface's block is behind the section's, its snap length behind type, length, link type.
	at := binary.LittleEndian.Uint32([]byte(out)[4:])
	testkit.Equal(t, binary.LittleEndian.Uint32([]byte(out)[at+12:]), uint32(9100), "snap length")
}

func TestCaptureEndsAtItsSize(t *testing.T) {
	var asked trace.Query
	socket := tracer(t, &asked, packet(1, large), packet(2, large), packet(3, large), packet(4, large))
	file := filepath.Join(t.TempDir(), "x.pcapng")
	code, _, stderr := run(t, "", "--socket", socket, "capture", "-w", file, "--size", "1")
	testkit.ErrorIf(t, code != 0 || !strings.Contains(stderr, "has 1 MB (--size) and ends"), "%d %s", code, stderr)
	data, err := os.ReadFile(file)
	testkit.Must(t, err)
	testkit.Equal(t, fmt.Sprint(framesOf(t, data)), "[1 2]", "frames of the whole capture")
	info, err := os.Stat(file)
	testkit.Must(t, err)
	testkit.Equal(t, info.Mode().Perm(), os.FileMode(0o600), "mode") // subscribers' traffic
}

// Seven packets, two a file, three files: the last file takes the first one's place.
func TestCaptureRotates(t *testing.T) {
	var packets []trace.Packet
	for n := range uint32(7) {
		packets = append(packets, packet(n+1, large))
	}
	var asked trace.Query
	socket := tracer(t, &asked, packets...)
	base := filepath.Join(t.TempDir(), "ring")
	code, _, stderr := run(t, "", "--socket", socket, "capture", "-w", base, "--size", "1", "--files", "3")
	testkit.ErrorIf(t, code != 0 || stderr != "7 packets\n", "%d %s", code, stderr)
	for i, want := range []string{"[7]", "[3 4]", "[5 6]"} {
		data, err := os.ReadFile(fmt.Sprintf("%s.%d", base, i))
		testkit.Must(t, err)
		testkit.Equal(t, fmt.Sprint(framesOf(t, data)), want, "file %d", i)
		testkit.ErrorIf(t, len(data) > 2<<20, "file %d has %d bytes", i, len(data))
	}
	left, err := filepath.Glob(base + "*")
	testkit.Must(t, err)
	testkit.Equal(t, len(left), 3, "files")
}
