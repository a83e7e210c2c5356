// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/testkit"
)

const small = "ports:\n  - {name: access, driver: inject, role: access}\n  - {name: core, driver: inject, role: core}\n"

// The state file is exactly what goes over the socket: BEGIN, a PUT for each object, COMMIT.
func TestStateFile(t *testing.T) {
	plan, err := plan.Make("small.yaml", []byte(small))
	testkit.Must(t, err)
	var b bytes.Buffer
	testkit.Must(t, WriteState(&b, plan))
	rest := b.Bytes()
	var types []uint16
	objects := 0
	for sequence := uint32(1); len(rest) > 0; sequence++ {
		var h api.Header
		if rest, err = api.Decode(rest, &h); err != nil || h.Magic != api.Magic || int(h.Length) > len(rest) ||
			h.Sequence != sequence {
			t.Fatalf("header %+v, %v", h, err)
		}
		types = append(types, h.Type)
		if h.Type == api.TypePut {
			var head api.ObjectHead
			body, err := api.ReadRow(rest[:h.Length], &head)
			testkit.FatalIf(t, err != nil, "object %+v with %d bytes", head, len(body))
			want := plan.Objects[objects]
			if head.Kind != want.Kind || head.Key != want.Key || !bytes.Equal(body, want.Body) {
				t.Errorf("object %d is %+v, want %s", objects, head, want.Name())
			}
			objects++
		}
		rest = rest[h.Length:]
	}
	if objects != len(plan.Objects) || types[0] != api.TypeBegin || types[len(types)-1] != api.TypeCommit {
		t.Errorf("%d objects, types %v", objects, types)
	}
}

// The data plane gets the arguments as given, and its exit status is ours.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	file, program := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "dp")
	os.WriteFile(file, []byte(small), 0o600)
	os.WriteFile(program, []byte("#!/bin/sh\ntest -s \"$3\" || exit 9\nshift 3\necho \"$@\"\nexit 4\n"), 0o700)
	var out bytes.Buffer
	opt := Options{File: file, In: []string{"access=a.pcap"}, Out: []string{"core=b.pcap"}, Counters: "c.json",
		Skip: true, DPBinary: program}
	code, err := Run(t.Context(), opt, &out, &out)
	want := "--in access=a.pcap --out core=b.pcap --counters c.json --skip\n"
	testkit.ErrorIf(t, code != 4 || err != nil || out.String() != want,
		"status %d, %v, output %q", code, err, out.String())
	for _, test := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.In = nil }, "nothing to replay"},
		{func(o *Options) { o.In = []string{"x"} }, "not PORT=FILE"},
		{func(o *Options) { o.Out = []string{"=x"} }, "not PORT=FILE"},
		{func(o *Options) { o.File = dir + "/none" }, "no such file"},
		{func(o *Options) { o.DPBinary = dir + "/none" }, "no such file"},
	} {
		o := opt
		test.change(&o)
		if _, err := Run(t.Context(), o, &out, &out); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}
