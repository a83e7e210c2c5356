// SPDX-License-Identifier: Apache-2.0

package dp_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/access"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/testkit"
)

// realDataPlane starts the program that ISTHMUS_DP names, with one worker and an access port inside the graph that
// makes PADIs of 4,096 subscribers, at most so many a second.
func realDataPlane(b *testing.B, rate uint64) (socket string, pid int) {
	b.Helper()
	program := os.Getenv("ISTHMUS_DP")
	if program == "" {
		b.Skip("ISTHMUS_DP names no data plane: ISTHMUS_DP=build/isthmus-dp")
	}
	socket = b.TempDir() + "/dp.sock"
	cmd := exec.Command(program, "--socket", socket, "--huge", "no")
	testkit.Must(b, cmd.Start())
	b.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	testkit.Until(b, "the data plane listens", func() bool {
		c, err := dp.Dial(b.Context(), socket)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	c, err := dp.Dial(b.Context(), socket)
	testkit.Must(b, err)
	defer c.Close()
	engine := api.Engine{Workers: 1, PacketBuffers: 32768, MaxSessions: 65536, MaxFlows: 1024,
		MaxHeld: 512, MaxFragments: 512, MaxBuffered: 512, MaxScheduled: 512,
		MaxHandedOver: 8192, MaxPunted: 8192, Flags: api.EngineIdleSleep,
		PuntSubscriberRate: 1e7, PuntLineRate: 1e7, PuntSTagRate: 1e7, PuntPortRate: 1e7}
	for i := range engine.CPU {
		engine.CPU[i] = -1
	}
	port := api.Port{Role: api.RoleAccess, MTU: 1500, MAC: [6]byte{2, 1}}
	copy(port.Driver[:], "synth")
	padi := []byte{255, 255, 255, 255, 255, 255, 2, 2, 0, 0, 0, 0, 0x88, 0xa8, 0, 100, 0x81, 0, 0, 0, 0x88, 0x63,
		0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0}
	stream := api.Synth{Flows: 4096, Share: 1, Sizes: 1, Rate: rate,
		In: api.SynthTemplate{Length: uint16(len(padi)), Fields: 1}}
	copy(stream.Port[:], "access")
	copy(stream.Sink[:], "access")
	stream.Size[0] = 64
	copy(stream.In.Bytes[:], padi)
	stream.In.Field[0] = api.SynthField{Offset: 18, Width: 2, Type: api.FieldAdd, Divide: 1, Modulo: 4000, Step: 1}
	stream.Out = stream.In
	testkit.Must(b, c.Apply(b.Context(), []dp.Change{
		{Kind: api.KindEngine, Key: "engine", Body: api.Body(&engine)},
		{Kind: api.KindPort, Key: "access", Body: api.Body(&port)},
		{Kind: api.KindSynth, Key: "padi", Body: api.Body(&stream)},
	}))
	return socket, cmd.Process.Pid
}

// cpuOf is the CPU time of a process's first thread, a data plane's control thread.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, pid))
	testkit.Must(b, err)
	ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
	testkit.Must(b, err)
	return time.Duration(ns)
}

func ourCPU(b *testing.B) time.Duration {
	b.Helper()
	var all time.Duration
	threads, err := os.ReadDir("/proc/self/task")
	testkit.Must(b, err)
	for _, thread := range threads {
		if text, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/schedstat"); err == nil {
			ns, _ := strconv.ParseInt(string(bytes.Fields(text)[0]), 10, 64)
			all += time.Duration(ns)
		}
	}
	return all
}

// perFrame runs the work, and reports the CPU time of both processes.
func perFrame(b *testing.B, pid int, work func()) {
	theirs, ours := cpuOf(b, pid), ourCPU(b)
	b.ResetTimer()
	work()
	b.StopTimer()
	b.ReportMetric(float64(cpuOf(b, pid)-theirs)/float64(b.N), "dataplane-ns/frame")
	b.ReportMetric(float64(ourCPU(b)-ours)/float64(b.N), "controlplane-ns/frame")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}

func BenchmarkChannelUp(b *testing.B) {
	socket, pid := realDataPlane(b, 1e6)
	ch, err := dp.OpenChannel(b.Context(), socket)
	testkit.Must(b, err)
	defer ch.Close()
	c, err := dp.Dial(b.Context(), socket)
	testkit.Must(b, err)
	defer c.Close()
	testkit.Must(b, c.Stream(b.Context(), "padi", true))
	perFrame(b, pid, func() {
		for n := 0; n < b.N; {
			frames, err := ch.Next(b.Context())
			testkit.Must(b, err)
			n += len(frames)
		}
	})
	nodes, err := dp.Table[api.NodeRow](b.Context(), c, api.TableNode, "", 0)
	testkit.Must(b, err)
	for _, n := range nodes {
		if api.CString(n.Name[:]) == "access-punt" {
			b.ReportMetric(float64(n.Ticks)/float64(n.Packets), "access-punt-ticks/frame")
		}
	}
}

func BenchmarkChannelDown(b *testing.B) {
	socket, pid := realDataPlane(b, 1)
	ch, err := dp.OpenChannel(b.Context(), socket)
	testkit.Must(b, err)
	defer ch.Close()
	c, err := dp.Dial(b.Context(), socket)
	testkit.Must(b, err)
	defer c.Close()
	pado := []byte{0x11, 7, 0, 0, 0, 4, 1, 1, 0, 0}
	batch := make([]access.Frame, 64)
	for i := range batch {
		batch[i] = access.Frame{EtherType: 0x8863, Payload: pado,
			Line: access.Line{Port: "access", TPID: 0x88a8, STag: 100, CTag: uint16(i), MAC: [6]byte{2, 2}}}
	}
	done := func() (frames, full uint64) {
		rows, err := dp.Table[api.ChannelRow](b.Context(), c, api.TableChannel, "", 0)
		testkit.Must(b, err)
		return rows[len(rows)-1].Frames, rows[len(rows)-1].Full
	}
	perFrame(b, pid, func() {
		for n := 0; n < b.N; n += len(batch) {
			few := batch[:min(len(batch), b.N-n)]
			testkit.Until(b, "there is room", func() bool { return ch.Send(few) == nil })
		}
		testkit.Until(b, "all have gone", func() bool {
			frames, full := done()
			return frames+full+ch.Dropped() >= uint64(b.N)
		})
	})
	_, full := done()
	b.ReportMetric(100*float64(full)/float64(b.N), "%lost")
}
