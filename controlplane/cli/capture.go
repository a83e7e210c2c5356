// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"isthmus/controlplane/command"
	"isthmus/controlplane/trace"
)

// rows reads a table of show, or the interfaces of the running configuration.
func (e *env) rows(ctx context.Context, table string, query url.Values, to any) error {
	if table != "interfaces" {
		data, err := e.Call(ctx, "GET", "/v1/show/"+table, query, nil)
		if err != nil {
			return err
		}
		return json.Unmarshal(data, to)
	}
	text, err := e.inEffect(ctx)
	if err != nil {
		return err
	}
	var file map[string]any
	if err := yaml.Unmarshal(text, &file); err != nil {
		return err
	}
	list, err := yaml.Marshal(file[table])
	if err != nil {
		return err
	}
	return yaml.Unmarshal(list, to)
}

// output is where a capture goes: standard output, a file, or one file after another.
type output struct {
	path    string // "-": standard output
	out     io.Writer
	size    int64 // bytes of a file, after which the next one begins; 0: no limit
	files   int   // so many are kept
	comment string
	snap    uint32

	file   *os.File
	buffer *bufio.Writer
	w      *trace.Writer
	number int
}

func (o *output) name() string {
	if o.size == 0 || o.files <= 1 {
		return o.path
	}
	return fmt.Sprintf("%s.%d", o.path, o.number%o.files)
}

func (o *output) open() error {
	w := o.out
	if o.path != "-" {
		// Subscribers' traffic is in it.
		f, err := os.OpenFile(o.name(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		o.file, w = f, f
	}
	o.buffer = bufio.NewWriterSize(w, 256<<10)
	var err error
	o.w, err = trace.NewWriter(o.buffer, "isthmus capture "+command.Version, o.comment, o.snap)
	return err
}

func (o *output) close() error {
	var err error
	if o.buffer != nil {
		err = o.buffer.Flush()
	}
	if o.file != nil {
		err = errors.Join(err, o.file.Close())
		o.file = nil
	}
	o.buffer = nil
	return err
}

var errFull = errors.New("the capture has its size")

func (o *output) write(p *trace.Packet) error {
	for i := range p.Frames {
		if o.size != 0 && o.w.Written >= o.size {
			if o.files <= 1 {
				return errFull
			}
			if err := o.close(); err != nil {
				return err
			}
			o.number++
			if err := o.open(); err != nil {
				return err
			}
		}
		if err := o.w.Frame(p, &p.Frames[i]); err != nil {
			return err
		}
	}
	return nil
}

const captureLong = `Writes chosen packets to a file, or with -w - to standard output:
  isthmus capture -w - | wireshark -k -i -
Each port is an interface of the capture. A comment at each packet says how it ended and by which
nodes it went; one at the beginning has the configuration that was in force. Ends by itself after
--for (a minute), --count, --size.`

func captureCommand(e *env) *cobra.Command {
	var s selection
	o := output{out: e.Out}
	var stages []string
	var megabytes int64
	cmd := &cobra.Command{
		Use: "capture -w FILE", Args: cobra.NoArgs,
		Example: "  isthmus capture --ue 10.45.0.7 -w ue.pcapng\n" +
			"  isthmus capture --subscriber home-17 -w - | wireshark -k -i -",
		Short: "write chosen packets as they came, inside their tunnels, and as they left, as pcapng",
		Long:  captureLong + ofOperate,
	}
	f := cmd.Flags()
	s.flags(f, time.Minute)
	f.StringVarP(&o.path, "write", "w", "", "file; -: standard output")
	f.StringSliceVar(&stages, "stage", []string{"received", "sent"},
		"which bytes: received (rx), inside (decap), sent (tx)")
	command.Values(cmd, "stage", "", "received", "inside", "sent", "rx", "decap", "tx")
	f.Uint32Var(&s.query.Count, "count", 0, "end after so many packets (0: no limit)")
	f.Uint32Var(&s.query.Snap, "snap", 9216, "bytes of a packet at most")
	f.StringVar(&s.query.Drop, "drop", "", "packets that are dropped for this reason; any: for whichever")
	f.Int64Var(&megabytes, "size", 100, "megabytes of the file at most (0: no limit)")
	f.IntVar(&o.files, "files", 1,
		"at that size begin the next of so many files, FILE.0, FILE.1, ..., and again the first")
	cmd.MarkFlagRequired("write")
	cmd.RunE = command.Failed(func(cmd *cobra.Command, _ []string) error {
		if err := s.finish(); err != nil {
			return err
		}
		for _, stage := range stages {
			word, ok := map[string]string{"rx": "received", "decap": "inside", "tx": "sent"}[stage]
			if !ok {
				word = stage
			}
			s.query.Stages = append(s.query.Stages, word)
		}
		if megabytes < 0 || o.files < 1 || o.files > 10000 {
			return command.Usage("--size is 0 or more, --files 1 to 10000")
		}
		if o.files > 1 && (megabytes == 0 || o.path == "-") {
			return command.Usage("--files needs a --size, and a file to write to")
		}
		o.size, o.snap = megabytes<<20, s.query.Snap
		return e.capture(cmd, &s.query, &o)
	})
	return cmd
}

func (e *env) capture(cmd *cobra.Command, q *trace.Query, o *output) error {
	bar := command.NewProgress(e.Err, cmd.CommandPath())
	bar.During(time.Duration(q.Seconds) * time.Second)
	defer bar.Done()
	config, err := e.inEffect(cmd.Context()) // to be read on any machine
	if err != nil {
		return err
	}
	var ports []struct{ Name, MAC string }
	if err := e.rows(cmd.Context(), "port", nil, &ports); err != nil {
		return err
	}
	macs := map[string]string{}
	for _, p := range ports {
		macs[p.Name] = p.MAC
	}
	o.comment = trace.ConfigComment(config, macs, time.Now())
	if err := o.open(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var last trace.State
	packets := 0
	err = command.Stream(ctx, &e.Env, "/v1/trace", q, func(u trace.Update) error {
		last = u.State
		for i := range u.Packets {
			packets++
			if err := o.write(&u.Packets[i]); err != nil {
				return err
			}
		}
		return o.buffer.Flush() // who reads it live sees it
	})
	bar.Done()
	if err == nil && last.Ended == "" && ctx.Err() == nil {
		err = errGone
	}
	if again := o.close(); err == nil {
		err = again
	}
	switch {
	case errors.Is(err, errFull):
		fmt.Fprintf(e.Err, "the capture has %d MB (--size) and ends\n", o.size>>20)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the disk is full after %d packets, the capture ends (--size, --files bound it): %w",
			packets, err)
	case errors.Is(err, syscall.EPIPE):
		return nil // who reads it went
	case err != nil:
		return err
	}
	fmt.Fprintf(e.Err, "%d packets\n", packets)
	return sayEnd(e, last, 1, false)
}
