// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/controlplane/events"
)

// eventReader prints events, and remembers the last.
type eventReader struct {
	*env
	asJSON bool
	query  url.Values
	last   string // cursor
	there  bool   // a stream has begun
}

func eventsCommand(e *env) *cobra.Command {
	r := &eventReader{env: e, query: url.Values{}}
	var follow, live bool
	var after string
	var kinds []string
	var limit uint32
	cmd := &cobra.Command{
		Use: "events", Short: "what happened: sessions, peers, ports, drops, limits, who changed what",
		Example: "  isthmus events -f\n  isthmus events --kind config.applied -j",
		Args:    cobra.NoArgs,
		Long: "What happened, oldest first: what the control plane has in memory; with -f new events, too.\n" +
			"docs/reference/events.md has the kinds.",
	}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "go on with new events, also after a restart of the control plane")
	f.BoolVar(&live, "live", false, "with -f: leave out what is in memory")
	f.BoolVarP(&r.asJSON, "json", "j", false, "print a line of JSON for each")
	f.StringVar(&after, "after", "", "only what came after the event with this id")
	f.StringSliceVar(&kinds, "kind", nil, "kinds, or their first words (port, config.applied)")
	f.Uint32Var(&limit, "limit", 0, "at most so many (0: all in memory)")
	var names []string
	for _, k := range events.Kinds {
		names = append(names, k.Name)
	}
	command.Values(cmd, "kind", "", names...)
	cmd.RunE = command.Failed(func(cmd *cobra.Command, _ []string) error {
		if len(kinds) > 0 {
			r.query["kind"] = kinds
		}
		if after != "" {
			r.query.Set("after", after)
		}
		if live && !follow || limit > 0 && follow {
			return command.Usage("--live goes with -f, --limit without")
		}
		if !follow {
			return r.all(cmd.Context(), uint64(limit))
		}
		if live {
			r.query.Set("live", "true")
		}
		return r.follow(cmd.Context())
	})
	return cmd
}

// all prints what is in memory, limit events at most (0: all of them), answer by answer.
func (r *eventReader) all(ctx context.Context, limit uint64) error {
	for printed := uint64(0); limit == 0 || printed < limit; {
		if limit > 0 {
			r.query.Set("limit", strconv.FormatUint(limit-printed, 10))
		}
		data, err := r.Call(ctx, "GET", "/v1/events", r.query, nil)
		if err != nil {
			return err
		}
		var page events.Page
		if err := json.Unmarshal(data, &page); err != nil {
			return err
		}
		r.lost(page.Lost)
		for i := range page.Events {
			if err := r.print(&page.Events[i]); err != nil {
				return err
			}
		}
		if len(page.Events) == 0 || page.Next == "" {
			return nil
		}
		printed += uint64(len(page.Events))
		r.query.Set("after", page.Next)
	}
	return nil
}

// lost says so, beside the output.
func (r *eventReader) lost(n uint64) {
	if n > 0 {
		fmt.Fprintf(r.Err, "isthmus: %d events are not in memory any more\n", n)
	}
}

func (r *eventReader) print(e *events.Event) error {
	r.last = e.Cursor()
	if r.asJSON {
		return json.NewEncoder(r.Out).Encode(e)
	}
	line := []string{strconv.FormatUint(e.ID, 10), e.Time.Format("2006-01-02T15:04:05.000Z"), e.Kind,
		quoted(e.Subject)}
	for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
		line = append(line, name+"="+quoted(fieldText(e.Fields[name])))
	}
	if w := e.Who; w != nil {
		line = append(line, "by="+quoted(whoText(w)))
	}
	_, err := fmt.Fprintln(r.Out, strings.Join(line, " "))
	return err
}

func fieldText(v any) string {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		words := make([]string, len(v))
		for i := range v {
			words[i] = fmt.Sprint(v[i])
		}
		return strings.Join(words, ", ")
	}
	return fmt.Sprint(v)
}

// quoted keeps what others name from a terminal, and a field in its place.
func quoted(s string) string {
	if s == "" {
		return "-"
	}
	whole := strconv.Quote(s)
	if strings.ContainsAny(s, " =") || whole != `"`+s+`"` {
		return whole
	}
	return s
}

func whoText(w *events.Who) string {
	switch w.Via {
	case "unix":
		return fmt.Sprintf("uid:%d pid:%d %s", w.UID, w.PID, w.Program)
	case "tcp":
		return w.Token + "@" + w.Address
	}
	return w.Program
}

// follow reads the stream, again and again from where it ended.
func (r *eventReader) follow(ctx context.Context) error {
	for {
		err := r.stream(ctx)
		var exit *command.Exit
		switch {
		case ctx.Err() != nil:
			return nil
		case !r.there && errors.As(err, &exit): // it never was there, or the command line is wrong
			return err
		case err != nil && !errors.As(err, &exit) && !errors.Is(err, errStreamEnded):
			return err // refused
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		if r.last != "" {
			r.query.Set("after", r.last)
			r.query.Del("live")
		}
	}
}

var errStreamEnded = errors.New("the stream ended")

func (r *eventReader) stream(ctx context.Context) error {
	res, err := r.Open(ctx, "GET", "/v1/events", r.query, nil, http.Header{"Accept": {"text/event-stream"}})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	r.there = true
	in := bufio.NewReaderSize(res.Body, 1<<20) // an event is some kilobytes
	name := ""
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) || ctx.Err() == nil {
				return errStreamEnded
			}
			return err
		}
		text := strings.TrimRight(string(line), "\r\n")
		if word, ok := strings.CutPrefix(text, "event: "); ok {
			name = word
		}
		data, ok := strings.CutPrefix(text, "data: ")
		if !ok {
			continue
		}
		if err := r.received(name, []byte(data)); err != nil {
			return err
		}
		name = ""
	}
}

func (r *eventReader) received(name string, data []byte) error {
	switch name {
	case "lost":
		var l struct{ Lost uint64 }
		if err := json.Unmarshal(data, &l); err != nil {
			return err
		}
		r.lost(l.Lost)
		return nil
	case "end":
		return errStreamEnded
	}
	var e events.Event
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	return r.print(&e)
}
