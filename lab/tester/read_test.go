// SPDX-License-Identifier: Apache-2.0

package tester

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
	"isthmus/traffic/job"
	"isthmus/traffic/layers"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	testkit.Must(t, err)
	return string(text)
}

// faultsOf is the faults of a text; "" when it is good.
func faultsOf(text string) string {
	if _, err := Parse("x.yaml", []byte(text)); err != nil {
		return err.Error() + "\n"
	}
	return ""
}

// Each block of testdata/faults.txt is an edit of a good file, with all its faults.
func TestFaults(t *testing.T) {
	base := read(t, "testdata/base.yaml")
	if got := faultsOf(base); got != "" {
		t.Fatal(got)
	}
	done := 0
	for block := range strings.SplitSeq(read(t, "testdata/faults.txt"), "\n\n") {
		text, from, want := base, "", ""
		for line := range strings.Lines(block) {
			rest := strings.ReplaceAll(strings.TrimSuffix(line[min(2, len(line)):], "\n"), `\n`, "\n")
			switch line[0] {
			case '-':
				from = rest
			case '+':
				if !strings.Contains(text, from) {
					t.Fatalf("the good file has no %q", from)
				}
				text = strings.Replace(text, from, rest, 1)
			case '!':
				want += "x.yaml:" + rest + "\n"
			}
		}
		if want == "" {
			continue
		}
		done++
		if got := faultsOf(text); got != want {
			t.Errorf("of\n%s\nwanted\n%sbut got\n%s", block, want, got)
		}
	}
	testkit.ErrorIf(t, done < 170, "%d blocks", done)
}

func TestTextsThatAreNoProfile(t *testing.T) {
	bomb := "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
	for _, next := range []string{"b", "c", "d", "e"} {
		before := string(next[0] - 1)
		bomb += next + ": &" + next + " [" + strings.Repeat("*"+before+",", 9) + "*" + before + "]\n"
	}
	for text, want := range map[string]string{
		"":                  "x.yaml:1: the file is empty\n",
		"# nothing\n":       "x.yaml:1: the file is empty\n",
		"--- \n":            "x.yaml:1: the file is empty\n",
		"- a\n- b\n":        "x.yaml:1: must be a mapping (key: value)\n",
		"a: 1\n---\nb: 2\n": "x.yaml:2: a second document, or text after the first, is not read\n",
		"a: &a [*a]\n":      "x.yaml:1: mappings, lists and aliases stand in each other more than 16 deep\n",
		strings.Repeat("[", 17) + "1" + strings.Repeat("]", 17) +
			"\n": "x.yaml:1: mappings, lists and aliases stand in " +
			"each other more than 16 deep\n",
		bomb: "x.yaml:1: more than 65536 values when aliases are written out\n",
		"a: 1\nb:\n" +
			strings.Repeat("- 1\n",
				65536): "x.yaml:1: more than 65536 values when aliases are written out\n",
		strings.Repeat("#\n", 600000): "x.yaml:1: is larger than 1 MB\n",
		"name: a\nports: [{name: r, driver: net_ring}]\nstreams:\n" + strings.Repeat("- {}\n",
			257): "x.yaml:4: " +
			"streams: must be a list of 1 to 256 streams\n",
		"name: a\nstreams: []\nports:\n" +
			strings.Repeat("- {}\n", 97): "x.yaml:2: streams: must be a list of 1 to 256 " +
			"streams\nx.yaml:4: ports: must be a list of 1 to 96 ports\n",
		"name: \"a\\e[31m0123456789012345678901234567890123456789012345678901234567890123456789\"\n" +
			"ports: [{name: r, driver: net_ring}]\nstreams: []\n": "x.yaml:1: " +
			"name: \"a?[31m0123456789012345678901234567890" +
			"1234567...\" must be a name of 1 to 31 letters, digits, and . _ : -\n" +
			"x.yaml:3: streams: must be a list of 1 to 256 streams\n",
	} {
		if got := faultsOf(text); got != want {
			t.Errorf("%.200s\nwanted %sgot %s", text, want, got)
		}
	}
	for text, line := range map[string]int{"name: a\nports: {\n": 2, "name: a\n b: c\n": 1, "a: 1\nb: \xff\n": 1,
		"a: *b\n": 1, "a: 1\nb: \"\x01\"\n": 1} {
		got := faultsOf(text)
		testkit.ErrorIf(t, !regexp.MustCompile(`^x\.yaml:\d+: not valid YAML: .+\n$`).MatchString(got),
			"%q: %s (line %d)", text, got, line)
	}
}

func TestManyFaultsAreCounted(t *testing.T) {
	got := faultsOf("name: a\nstreams: [{}]\nports: []\n" + strings.Repeat("x: 1\n", 60))
	testkit.ErrorIf(t, strings.Count(got, "\n") != mostFaults+1 || !strings.Contains(got, "x.yaml: and "), "%s",
		got)
}

func TestFilesThatCannotBeRead(t *testing.T) {
	folder := t.TempDir()
	_, err := Load(folder)
	testkit.Refused(t, err, folder+":1: is a directory")
	_, err = Load(folder + "/none.yaml")
	testkit.Refused(t, err, folder+"/none.yaml:1: no such file or directory")
}

const (
	onePort = "ports: [{name: a, driver: net_ring}]\n"
	frame   = "[{ethernet: {destination: 02:00:00:00:00:01, source: 02:00:00:00:00:02}}]"
	small   = "name: x\n" + onePort + "streams: [{name: s, port: a, sink: a, size: 64, send: " + frame +
		"}]\nrun: {rate: 1kpps}\n"
)

func good(t *testing.T, text string) *Checked {
	t.Helper()
	c, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The sum of flows is bounded, too.
func TestFlowsTogether(t *testing.T) {
	text := "name: a\nports: [{name: r, driver: net_ring}]\nrun: {rate: 1}\nstreams:\n"
	for i := range 5 {
		if i == 4 {
			good(t, text)
		}
		text += fmt.Sprintf("- {name: s%d, port: r, sink: r, flows: 16777216, size: 64, send: %s}\n", i, frame)
	}
	const want = "x.yaml:5: streams: the streams have 83886080 flows together, and at most 67108864 are possible\n"
	testkit.Equal(t, faultsOf(text), want, "%s", text)
}

func TestRates(t *testing.T) {
	for text, want := range map[Rate]struct {
		of    Unit
		value float64
	}{"100kpps": {Packets, 100e3}, "1.5Mpps": {Packets, 1.5e6}, "1.5 Mpps": {Packets, 1.5e6}, "7": {Packets, 7},
		"7pps": {Packets, 7}, "1e+06": {Packets, 1e6}, ".5kpps": {Packets, 500}, "64kbit": {Bits, 64e3},
		"10Mbit": {Bits, 10e6}, "2.5Gbit": {Bits, 2.5e9}, "9bit": {Bits, 9}, "50%": {OfRate, 0.5},
		"0.001%": {OfRate, 1e-5}, "max": {Fastest, math.Inf(1)}, "200Mpps": {Packets, 200e6},
		"400Gbit": {Bits, 400e9}, "1000%": {OfRate, 10}} {
		value, of, ok := text.Scan()
		near := value == want.value || math.Abs(value-want.value) <= 1e-12*want.value
		testkit.ErrorIf(t, !ok || of != want.of || !near || text.fault() != "", "%s: %v %v %q", text, value, of,
			text.fault())
	}
	for _, text := range []Rate{"", "x", "0", "0bit", "0%", "-1", "1k", "1mpps", "1 gbit", "1.2.3", "1e", "0x10",
		"nan", "inf", "1e999", "maximum", "%", ".", "200.1Mpps", "401Gbit", "1001%", "1 2"} {
		_, _, ok := text.Scan()
		testkit.ErrorIf(t, ok && text.fault() == "", "%q was taken for a rate", text)
	}
}

func TestUnits(t *testing.T) {
	for text, want := range map[string]uint64{"0xfF": 255, "18446744073709551615": math.MaxUint64} {
		got, err := whole(text)
		testkit.ErrorIf(t, err != nil || got != want, "%s: %d, %v", text, got, err)
	}
	for _, text := range []string{"", "0x", "-1", "1.5", "1 ", "18446744073709551616", "0xg", "+1", "1_0"} {
		_, err := whole(text)
		testkit.ErrorIf(t, err == nil, "%q was taken for a number", text)
	}
	for text, want := range map[string]float64{"500ms": 0.5, "100us": 1e-4, "2s": 2, "2": 2} {
		got, _, ok := scan(text, timeUnits)
		testkit.ErrorIf(t, !ok || math.Abs(got-want) > 1e-12, "%s: %v", text, got)
	}
	testkit.Equal(t, Part("5%").Value(), 0.05, "a part")
	for _, text := range []string{"", "02", "02:00:00:00:00:0", "02:00:00:00:00:001", "02-00-00-00-00-01",
		"02:00:00:00:00:0g", "02:00:00:00:00:01:02"} {
		_, err := macAddress(text)
		testkit.ErrorIf(t, err == nil, "%q was taken for a MAC address", text)
	}
	_, err := address("fd00::1%eth0")
	testkit.ErrorIf(t, err == nil, "an address with a zone")
}

func TestPresets(t *testing.T) {
	c := good(t, small)
	s, r := &c.Streams[0], &c.Run
	testkit.Equal(t, [...]int{c.MemoryMB, c.Ports[0].MTU, c.Ports[0].Descriptors, c.Ports[0].Queues, s.Share,
		s.Flows, s.Block, s.Seed, *s.CheckPayload, r.Disturbed.Repeats},
		[...]int{1024, 1500, 1024, 1, 1, 1, 1, 1, 1, 3}, "numbers")
	testkit.ErrorIf(t, !c.HugePages || c.CPUs != nil || c.Capture != nil || s.Expect != nil || s.Order != "turn" ||
		s.Zipf != 1 || s.Rate != "" || s.Answers != "", "%+v", c.Profile)
	g := &r.Search.Goals[0]
	testkit.Equal(t, [...]float64{r.Seconds, *r.Warmup, r.Drain, r.LinkWait, r.Disturbed.Steal.Value(),
		g.Loss.Value(), g.Exceed.Value(), g.Width.Value(), g.Initial, g.Final, g.Sum, *r.Search.Confirm,
		r.Latency.Seconds, r.Latency.At[1].Value()}, [...]float64{10, 0.2, 0.5, 10, 0.001, 0, 0.5, 0.005, 0.5,
		1, 3, 2, 1, 0.5}, "the run")
	testkit.ErrorIf(t, r.Mode != ModeFixed || r.Search.Min != "1kpps" || r.Search.Max != "" ||
		len(r.Latency.At) != 3, "%+v", r)
}

func TestStreamsAndRates(t *testing.T) {
	c := good(t, "name: x\ncpus: [3, 0x1]\nports:\n"+
		"  - {name: a, driver: net_memif, device: /x, args: id=0, mtu: 9000, descriptors: 2048}\n"+
		"  - {name: b, driver: pci, device: '0000:01:00.0', mac: 02:00:00:00:00:07,\n"+
		"     addresses: [10.0.0.1, 'fd00::1']}\n"+
		"streams:\n"+
		"  - {name: pong, port: b, sink: a, answers: ping, flows: 9, size: 100, send: "+frame+"}\n"+
		"  - {name: ping, port: a, sink: b, rate: 8Mbit, flows: 9, size: 100, send: "+frame+",\n"+
		"     expect: {rate: 1kpps, layer: l3, tolerance: 2%, loss: 10%, p99_us: 250}}\n"+
		"  - {name: mix, port: a, sink: a, share: 3, order: zipf, zipf: 0.9, seed: 12345678901, check_payload: 0,\n"+
		"     size: {64: 7, 594: 4, 1518: 1}, send: "+frame+", receive: "+frame+"}\n"+
		"  - {name: big, port: a, sink: a, order: random, size: 9000, send: "+frame+"}\n"+
		"run: {mode: steps, rate: 1Mbit, steps: [50%, 2Mbit, 10kpps, max], search: {width: 1%, goals: [{loss: 1%},\n"+
		"  {loss: 2%, width: 2%, final: 2}]}, latency: {at: [], seconds: 0}, disturbed: {repeats: 0, steal: 1}}\n"+
		"capture: {file: x.pcap, every: 1, count: 2}\n")
	ping, mix := &c.Streams[1], &c.Streams[2]
	// Rates of the run: 1 Mbit/s of frames that are (3 mix + 9000) / 4 bytes on average.
	mean := (64*7 + 594*4 + 1518) / 12.0
	pps := 1e6 / 8 / ((3*mean + 9000) / 4)
	for got, want := range map[float64]float64{mix.MeanBytes(): mean, ping.ownPPS(): 10000, mix.ownPPS(): 0,
		c.RatePPS(c.Run.Rate): pps, c.RatePPS(c.Run.Steps[0]): pps / 2, c.RatePPS(c.Run.Steps[1]): 2 * pps,
		c.Run.Search.Goals[0].Width.Value(): 0.01, c.Run.Search.Goals[1].Final: 2, c.Run.Seconds: 1} {
		testkit.ErrorIf(t, math.Abs(got-want) > 1e-9*want, "%v is not %v", got, want)
	}
	testkit.ErrorIf(t, !math.IsInf(c.RatePPS(c.Run.Steps[3]), 1) || len(c.Run.Latency.At) != 0, "%+v", c.Run)
	first, big := c.stream(0), c.stream(3)
	testkit.ErrorIf(t, first.Answers != 1 || first.Port != 1 || first.Sink != 0 || first.Share != 0 ||
		first.Judged != 1, "%+v", first)
	testkit.ErrorIf(t, big.Order != 1 || big.ReceiveAny != 1 || big.Share != 1, "%+v", big)
	got := c.stream(2)
	testkit.ErrorIf(t, got.Sizes != 3 || got.Size[2] != job.Size{Bytes: 1518, Weight: 1} || got.ReceiveAny != 0 ||
		got.CheckPayload != 0 || got.Seed != 12345678901, "%+v", got)
	testkit.ErrorIf(t, c.stream(1).Judged != 0 || c.stream(1).OwnPps != 10000, "%+v", c.stream(1))
	port := c.Ports[1].job()
	testkit.ErrorIf(t, port.MAC[5] != 7 || port.Addresses != 2 || port.Address[1].Version != 6 ||
		port.Address[1].Bytes[15] != 1 || port.Address[0].Version != 4, "%+v", port)
	head := c.head(true)
	testkit.ErrorIf(t, head.CPUs != 2 || head.CPU[0] != 3 || head.GatewayCPU != job.NoCPU || head.Check != 1 ||
		head.StealMax != 1 || head.Capture.Count != 2, "%+v", head)
	want := job.SizeofJob + 2*job.SizeofPort + 4*(job.SizeofStream+2*job.SizeofStack)
	testkit.Equal(t, len(c.Job(false)), want, "bytes of the job")
}

// One stream's layers with values of every form.
func TestValues(t *testing.T) {
	c := good(t,
		"name: x\n"+onePort+"streams:\n- name: s\n  port: a\n  sink: a\n  size: 300\n  flows: 256\n  send:\n"+
			"  - ethernet: {destination: 02:00:00:00:00:01, source: {base: 02:00:00:00:00:80, step: 2}}\n"+
			"  - ipv6: {source: {base: \"fd00::1\", step: \"0:0:0:1::\", each: 4, count: 3}, destination: "+
			"\"fd00::2\"}\n"+
			"  - udp:\n"+
			"  - gtpu: {teid: {base: 0x10000000}, extensions: [{pdu-session: {type: uplink, qfi: 9}},\n"+
			"           {raw: {type: 0x40, content: '0102a3B4c5d6'}}]}\n"+
			"  - ipv4: {source: {base: 10.0.0.0, each: 4}, destination: 10.1.0.1, ttl: 7}\n"+
			"run: {rate: 1}\n")
	s := c.read.stacks["streams[0].send"]
	field := func(layer int, name string) *job.Value {
		for i, f := range layers.All[s.Layer[layer].Kind].Fields {
			if f.Name == name {
				return &s.Layer[layer].Field[i]
			}
		}
		t.Fatal(name)
		return nil
	}
	for _, want := range []struct {
		layer             int
		name, bytes       string
		word              byte
		step, each, count uint32
	}{{0, "source", "00000000000000000000020000000080", 3, 2, 1, 0},
		{1, "source", "fd000000000000000000000000000001", 1, 1, 4, 3},
		{4, "source", "0000000000000000000000000a000000", 3, 1, 4, 0},
		{4, "ttl", "00000000000000000000000000000007", 3, 0, 1, 0}} {
		got := field(want.layer, want.name)
		testkit.ErrorIf(t, got.Given != 1 || got.Word != want.word || got.Step != want.step ||
			got.Each != want.each || got.Count != want.count ||
			hex.EncodeToString(got.Bytes[:]) != want.bytes, "%s: %+v", want.name, got)
	}
	testkit.ErrorIf(t, s.Layers != 5 || s.Layer[0].Line != 10 || s.Layer[4].Line != 15 ||
		s.Layer[2].Field[0].Given != 0, "%d layers", s.Layers)
	gtpu := &s.Layer[3]
	testkit.ErrorIf(t, gtpu.Extensions != 2 ||
		gtpu.Extension[0] != job.Extension{Type: 0x85, Length: 2, Content: [30]byte{0x10, 9}} ||
		gtpu.Extension[1] != job.Extension{Type: 0x40, Length: 6, Content: [30]byte{1, 2, 0xa3, 0xb4, 0xc5,
			0xd6}}, "%+v", gtpu.Extension)
}

// The command line's changes are checked again.
func TestOverride(t *testing.T) {
	for o, want := range map[Overrides]string{
		{Mode: "steps"}:                 "test.yaml, with the options given: run.steps: mode steps needs",
		{Mode: "fast"}:                  "--mode fast: must be fixed, search or steps",
		{Rate: "5parsec"}:               "--rate 5parsec: must be a rate like 100kpps, 1.5Mpps, 10Gbit or max",
		{Rate: "50%"}:                   "--rate 50%: must be",
		{Seconds: "2h"}:                 "--seconds 2h: must be from 0.01 to 86400",
		{Mode: "search", Rate: "2Mpps"}: "",
		{Rate: "max", Seconds: "500ms", Capture: "x.pcap", NoHuge: true}: "",
	} {
		c := good(t, small)
		err := c.Override(o)
		testkit.ErrorIf(t, (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want),
			"%+v: %v", o, err)
		if err == nil && o.NoHuge {
			testkit.ErrorIf(t, c.HugePages || c.Run.Rate != "max" || c.Run.Mode != ModeFixed ||
				c.Run.Seconds != 0.5 || c.Capture.File != "x.pcap" || c.Capture.Count != 1000, "%+v",
				c.Profile)
		}
	}
}

func TestExamplesAreGood(t *testing.T) {
	files, err := filepath.Glob("../../traffic/profiles/*.yaml")
	testkit.Must(t, err)
	testkit.ErrorIf(t, len(files) < 6, "%d profiles", len(files))
	for _, file := range files {
		_, err := Load(file)
		testkit.Must(t, err)
	}
}

// Any text: a refusal has a reason with file and line, an accepted text becomes a job.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("../../traffic/profiles/*.yaml")
	for _, file := range append(files, "testdata/base.yaml") {
		text, err := os.ReadFile(file)
		testkit.Must(f, err)
		f.Add(text)
	}
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("name: a\n---\nname: b\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("fuzz", text)
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				testkit.ErrorIf(t, !strings.HasPrefix(line, "fuzz:"), "%q", line)
			}
			return
		}
		want := job.SizeofJob + len(c.Ports)*job.SizeofPort +
			len(c.Streams)*(job.SizeofStream+2*job.SizeofStack)
		testkit.Equal(t, len(c.Job(false)), want, "bytes of the job")
		again, err := Parse("fuzz", bytes.Clone(text))
		testkit.Must(t, err)
		testkit.ErrorIf(t, !bytes.Equal(again.Job(true), c.Job(true)), "another job")
	})
}
