// SPDX-License-Identifier: Apache-2.0

package tester

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"isthmus/controlplane/config"
)

// Checked is a profile that was read: with defaults filled in, and consistent.
type Checked struct {
	Profile
	File string
	read *reader // where everything stood
}

const (
	socketPath = 107 // bytes of sun_path, unix(7), without its end
	memifRing  = 16384
	mostFlows  = 1 << 26 // of all streams together
)

// check looks at what no single value shows.
func (r *reader) check(p *Profile) {
	for i, cpu := range p.CPUs {
		if slices.Contains(p.CPUs[:i], cpu) {
			r.fault(fmt.Sprintf("cpus[%d]", i), 0, "CPU %d stands here twice", cpu)
		}
	}
	for i := range p.Ports {
		r.port(p, i)
	}
	if p.Capture != nil && p.Capture.File != "" {
		r.capture(p.Capture.File)
	}
	flows := 0
	for i := range p.Streams {
		r.stream(p, i)
		flows += p.Streams[i].Flows
	}
	if flows > mostFlows {
		r.fault("streams", 0, "the streams have %d flows together, and at most %d are possible", flows,
			mostFlows)
	}
	// Of valid streams, or faults would follow from faults.
	bad := slices.ContainsFunc(r.List, func(f Fault) bool { return strings.HasPrefix(f.Text, "streams") })
	for i := 0; i < len(p.Streams) && !bad; i++ {
		r.answers(p, i)
	}
	r.run(p)
}

func (r *reader) port(p *Profile, i int) {
	port, path := &p.Ports[i], fmt.Sprintf("ports[%d]", i)
	device, ring := path+".device", port.Descriptors
	needy := []string{"share", "pci", "net_memif", "net_af_packet", "net_af_xdp", "net_tap", "net_vhost",
		"net_virtio_user"}
	if slices.Contains(needy, port.Driver) && r.lines[device] == 0 {
		r.fault(path, 0, "driver %s needs a device", port.Driver)
	}
	if port.Driver == "net_memif" && len(port.Device) > socketPath {
		r.fault(device, 0, "the path of a socket has at most %d bytes", socketPath)
	}
	if port.Driver == "share" && port.Args != "" {
		r.fault(path+".args", 0, "driver share takes none")
	}
	if strings.Contains(port.Device, ",") {
		r.fault(device, 0, "has a comma; further arguments belong in args")
	}
	if port.Driver == "net_memif" && (ring&(ring-1) != 0 || ring > memifRing) {
		r.fault(path+".descriptors", 0, "a ring of net_memif has a power of two up to %d, not %d", memifRing,
			ring)
	}
	for k, text := range port.Addresses {
		at := fmt.Sprintf("%s.addresses[%d]", path, k)
		a, err := address(text)
		if err != nil {
			continue // said already
		}
		// RFC 1122 §3.2.1.3, RFC 4291 §2.7
		if b := a.AsSlice(); a.IsUnspecified() || a.IsMulticast() || a.Is4() && (b[0] == 0 || b[0] >= 224) {
			r.fault(at, 0, "%s is no address of a single host", text)
		}
		for _, other := range port.Addresses[:k] {
			if o, err := address(other); err == nil && o == a {
				r.fault(at, 0, "%s stands here twice", text)
			}
		}
	}
	for k := range i {
		o := &p.Ports[k]
		if port.Name != "" && o.Name == port.Name {
			r.fault(path+".name", 0, "there is a port \"%s\" in line %d already", port.Name,
				r.lines[fmt.Sprintf("ports[%d]", k)])
		}
		if port.Device != "" && o.Driver == port.Driver && o.Device == port.Device && o.Args == port.Args {
			r.fault(path, 0, "has the same device and args as port \"%s\"", o.Name)
		}
	}
}

func (r *reader) capture(file string) {
	folder := filepath.Dir(file)
	if at, err := os.Stat(folder); err != nil {
		if errno := syscall.Errno(0); errors.As(err, &errno) {
			err = errno
		}
		r.fault("capture.file", 0, "folder %s: %v", folder, err)
	} else if !at.IsDir() {
		r.fault("capture.file", 0, "%s is no folder", folder)
	} else if at, err = os.Stat(file); err == nil && at.IsDir() {
		r.fault("capture.file", 0, "%s is a folder", file)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.fault("capture.file", 0, "%v", err)
	}
}

func (r *reader) stream(p *Profile, i int) {
	s, path := &p.Streams[i], fmt.Sprintf("streams[%d]", i)
	given := 0
	for _, key := range []string{"share", "rate", "answers"} {
		if r.lines[join(path, key)] > 0 {
			given++
		}
	}
	if given > 1 {
		r.fault(path, 0, "has more than one of share, rate and answers")
	}
	if given == 0 {
		s.Share = 1
	}
	if r.lines[path+".zipf"] > 0 && s.Order != "zipf" {
		r.fault(path+".zipf", 0, "is an exponent for order: zipf, and the order is %s", s.Order)
	}
	if e := s.Expect; e != nil && r.lines[path+".expect.rate"] == 0 &&
		(r.lines[path+".expect.layer"] > 0 || r.lines[path+".expect.tolerance"] > 0) {
		r.fault(path+".expect", 0, "layer and tolerance belong to a rate, and there is none")
	}
	for k := range i {
		if s.Name != "" && p.Streams[k].Name == s.Name {
			r.fault(path+".name", 0, "there is a stream \"%s\" in line %d already", s.Name,
				r.lines[fmt.Sprintf("streams[%d]", k)])
		}
	}
	r.named(path+".port", "port", s.Port, p.portNames())
	r.named(path+".sink", "port", s.Sink, p.portNames())
}

func (p *Profile) portNames() (names []string) {
	for i := range p.Ports {
		names = append(names, p.Ports[i].Name)
	}
	return names
}

func (p *Profile) streamNames() (names []string) {
	for i := range p.Streams {
		names = append(names, p.Streams[i].Name)
	}
	return names
}

// named checks that the name at path is one of names; a name missing for another reason is no further fault.
func (r *reader) named(path, kind, name string, names []string) bool {
	if r.lines[path] == 0 || len(names) == 0 || r.hasFault(path) {
		return false
	}
	if name == "" || !slices.Contains(names, name) {
		r.fault(path, 0, "there is no %s \"%s\"%s", kind, quote(name), config.Suggest(name, names))
		return false
	}
	return true
}

func (r *reader) hasFault(path string) bool {
	return slices.ContainsFunc(r.List, func(f Fault) bool { return strings.HasPrefix(f.Text, path+": ") })
}

// answers looks at the stream that stream i answers: it has as many flows, arrives where this one is sent, and is
// answered once.
func (r *reader) answers(p *Profile, i int) {
	s, path := &p.Streams[i], fmt.Sprintf("streams[%d].answers", i)
	if !r.named(path, "stream", s.Answers, p.streamNames()) {
		return
	}
	of := &p.Streams[slices.Index(p.streamNames(), s.Answers)]
	switch {
	case of == s:
		r.fault(path, 0, "a stream cannot answer itself")
		return
	case of.Flows != s.Flows:
		r.fault(path, 0, "stream \"%s\" has %d flows and this one %d; answers need as many", of.Name, of.Flows,
			s.Flows)
	case of.Sink != s.Port:
		r.fault(path, 0, "stream \"%s\" arrives at port \"%s\", and this one is sent from \"%s\"", of.Name,
			of.Sink, s.Port)
	case of.Answers != "":
		r.fault(path, 0, "stream \"%s\" answers another one itself", of.Name)
	}
	for k := range i {
		if p.Streams[k].Answers == s.Answers {
			r.fault(path, 0, "stream \"%s\" answers it already", p.Streams[k].Name)
		}
	}
}

// run completes the goals, and checks that mode, rate, steps and search fit together, if all else is good: a fault is
// not reported twice.
func (r *reader) run(p *Profile) {
	if p.Run.Seconds == 0 {
		p.Run.Seconds = 10
		if p.Run.Mode == ModeSteps {
			p.Run.Seconds = 1
		}
	}
	if p.Run.Search == nil {
		return // the run is no mapping
	}
	s := p.Run.Search
	for i := range s.Goals {
		g, path := &s.Goals[i], fmt.Sprintf("run.search.goals[%d]", i)
		if r.lines[path] == 0 {
			path = "run.search"
		}
		orElse(&g.Exceed, s.Exceed)
		orElse(&g.Width, s.Width)
		orElse(&g.Initial, s.Initial)
		orElse(&g.Final, s.Final)
		orElse(&g.Sum, s.Sum)
		if g.Final < g.Initial {
			r.fault(path, 0, "final (%.6g s) is shorter than initial (%.6g s)", g.Final, g.Initial)
		}
		if g.Sum < g.Final {
			r.fault(path, 0, "sum (%.6g s) is shorter than final (%.6g s)", g.Sum, g.Final)
		}
	}
	if len(r.List) > 0 {
		return
	}
	if key, why := p.CheckRun(); why != "" {
		at := "run." + key
		if r.lines[at] == 0 {
			at = "run"
		}
		if r.lines[at] == 0 {
			at = ""
		}
		r.fault(at, 0, "%s", why)
	}
}

func orElse[T comparable](v *T, preset T) {
	var zero T
	if *v == zero {
		*v = preset
	}
}

// CheckRun returns which key of `run` is wrong and why, of an otherwise good profile.
func (p *Profile) CheckRun() (key, why string) {
	shared := p.SharedBytes() > 0
	switch run := &p.Run; {
	case !shared && run.Mode != ModeFixed:
		return "mode", "every stream has a rate of its own, so no rate is left to look for: mode must be fixed"
	case run.Mode == ModeSteps:
		return p.checkSteps()
	case run.Mode == ModeSearch && !slices.ContainsFunc(p.Streams, func(s Stream) bool {
		return s.Share > 0 && s.Expect == nil
	}):
		return "mode", "mode search needs a stream with a share and without expect, whose loss decides"
	case run.Mode == ModeSearch && run.Search.Max != "" && p.RatePPS(run.Search.Min) >= p.RatePPS(run.Search.Max):
		return "search", "max must be above min"
	case run.Mode == ModeFixed && shared && run.Rate == "":
		return "rate", "mode fixed needs a rate for the streams with a share"
	case run.Mode == ModeFixed && !shared && run.Rate != "":
		return "rate", "the rate is nobody's, because no stream has a share"
	}
	return "", ""
}

func (p *Profile) checkSteps() (key, why string) {
	if len(p.Run.Steps) == 0 {
		return "steps", "mode steps needs a list of steps"
	}
	for i, step := range p.Run.Steps {
		if step.Unit() == OfRate && p.Run.Rate == "" {
			return "rate", "steps in % need a rate that they refer to"
		}
		if i > 0 && !p.rises(p.Run.Steps[i-1], step) {
			return "steps", "the steps must rise"
		}
	}
	return "", ""
}

// rises: a step is above the one before. max is unknown until the tester has tried, so steps in packets and parts of
// max cannot be compared here.
func (p *Profile) rises(before, step Rate) bool {
	parts := 0
	for _, one := range []Rate{before, step} {
		if one.Unit() == OfRate {
			parts++
		}
	}
	a, _, _ := before.Scan()
	b, _, _ := step.Scan()
	switch {
	case parts == 2:
		return b > a
	case parts == 1 && p.Run.Rate.Unit() == Fastest:
		return before.Unit() != Fastest
	}
	return p.RatePPS(step) > p.RatePPS(before)
}

// MeanBytes of a stream's frames, with FCS.
func (s *Stream) MeanBytes() float64 {
	bytes, weights := 0, 0
	for size, weight := range s.Size {
		bytes, weights = bytes+size*weight, weights+weight
	}
	return float64(bytes) / float64(max(1, weights))
}

// SharedBytes are the mean bytes with FCS of a packet of the streams with a share; 0 without one.
func (p *Profile) SharedBytes() float64 {
	bytes, shares := 0.0, 0.0
	for i := range p.Streams {
		s := &p.Streams[i]
		bytes += s.MeanBytes() * float64(s.Share)
		shares += float64(s.Share)
	}
	if shares == 0 {
		return 0
	}
	return bytes / shares
}

// RatePPS converts a rate of the run, of all streams with a share together: bits by the mean size of their frames,
// parts of the run's rate. 0 for none, infinity for max.
func (p *Profile) RatePPS(r Rate) float64 {
	value, of, _ := r.Scan()
	switch bytes := p.SharedBytes(); {
	case of == Bits && bytes == 0, of == OfRate && p.Run.Rate.Unit() == OfRate:
		return 0
	case of == Bits:
		return value / 8 / bytes
	case of == OfRate:
		return value * p.RatePPS(p.Run.Rate)
	}
	return value
}

// ownPPS is a stream's own rate; 0 of none, infinity of max.
func (s *Stream) ownPPS() float64 {
	value, of, _ := s.Rate.Scan()
	if of == Bits {
		return value / 8 / math.Max(1, s.MeanBytes())
	}
	return value
}

// Overrides are the command line's values in place of the file's. Empty: none.
type Overrides struct {
	Mode, Rate, Seconds, Capture string
	NoHuge                       bool
}

// Override changes a profile, and looks once more whether all goes together. A rate without a mode means ModeFixed.
func (c *Checked) Override(o Overrides) error {
	if o.Mode != "" {
		if !slices.Contains([]string{ModeFixed, ModeSearch, ModeSteps}, o.Mode) {
			return fmt.Errorf("--mode %s: must be fixed, search or steps", o.Mode)
		}
		c.Run.Mode = o.Mode
	}
	if rate := Rate(o.Rate); rate != "" {
		if _, of, ok := rate.Scan(); !ok || of == OfRate || rate.fault() != "" {
			return fmt.Errorf("--rate %s: must be a rate like 100kpps, 1.5Mpps, 10Gbit or max", rate)
		}
		c.Run.Rate = rate
		if o.Mode == "" {
			c.Run.Mode = ModeFixed
		}
	}
	if o.Seconds != "" {
		seconds, _, ok := scan(o.Seconds, timeUnits)
		if !ok || seconds < 0.01 || seconds > 86400 {
			return fmt.Errorf("--seconds %s: must be from 0.01 to 86400", o.Seconds)
		}
		c.Run.Seconds = seconds
	}
	if o.Capture != "" {
		if c.Capture == nil {
			c.Capture = &Capture{Every: 1024, Count: 1000}
		}
		c.Capture.File = o.Capture
	}
	c.HugePages = c.HugePages && !o.NoHuge
	if key, why := c.CheckRun(); why != "" {
		return fmt.Errorf("%s, with the options given: run.%s: %s", c.File, key, why)
	}
	return nil
}
