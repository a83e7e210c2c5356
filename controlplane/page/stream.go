// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"isthmus/controlplane/auth"
	"isthmus/controlplane/httpd"
)

const (
	queued       = 16 // messages that wait for a client; a slower client is disconnected
	writeTimeout = 10 * time.Second
)

// client is one open page. Its queue is closed, by the hub, after why was set.
type client struct {
	queue chan []byte
	why   string
	leave func() // its place
}

// hub knows the open pages. Page.lock guards it. A client is never waited for.
type hub struct {
	places  *httpd.Places
	clients []*client
	refused uint64 // there was no place
	slow    uint64 // let go because they did not read
}

func (h *hub) join(holder string) *client {
	leave := h.places.Take(holder)
	if leave == nil {
		h.refused++
		return nil
	}
	c := &client{queue: make(chan []byte, queued), leave: leave}
	h.clients = append(h.clients, c)
	return c
}

func (h *hub) leave(c *client) {
	c.leave()
	h.clients = slices.DeleteFunc(h.clients, func(o *client) bool { return o == c })
}

func (h *hub) send(message []byte) {
	h.clients = slices.DeleteFunc(h.clients, func(c *client) bool {
		select {
		case c.queue <- message:
			return false
		default:
			h.slow++
			c.why = fmt.Sprintf("this page is %d seconds behind", queued)
			close(c.queue)
			return true
		}
	})
}

func (h *hub) closeAll(why string) {
	for _, c := range h.clients {
		c.why = why
		close(c.queue)
	}
	h.clients = nil
}

// event writes one server-sent event. Neither name nor data has a line feed: data is JSON.
func event(name string, data []byte) []byte {
	b := make([]byte, 0, len(name)+len(data)+16)
	b = append(append(append(b, "event: "...), name...), "\ndata: "...)
	return append(append(b, data...), "\n\n"...)
}

// greeting is the begin of a stream: the hello's head, with the client's own data. helloRest follows.
func (p *Page) greeting(client auth.Identity) []byte {
	b := strconv.AppendBool([]byte("retry: 1000\n\nevent: hello\ndata: {\"trace\":"), p.mayTrace(client))
	return append(append(b, `,"token":`...), quote(client.Token())...)
}

// helloRest is the rest of the hello: status, then everything. Clients within one sample share it. The caller holds the
// lock.
func (p *Page) helloRest() []byte {
	if p.hello == nil || p.helloAt != p.history.tick {
		b := append([]byte(`,"period":1000,"samples":`), strconv.Itoa(samples)...)
		b = append(append(b, `,"status":`...), p.statusJSON()...)
		b = p.history.encode(append(b, `,"history":`...))
		p.hello, p.helloAt = append(b, "}\n\n"...), p.history.tick
	}
	return p.hello
}

// eventStream begins an answer of server-sent events, which lasts while the client reads. write sends one, and returns
// whether it was sent.
func eventStream(w http.ResponseWriter) (write func(message []byte) bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Time{})
	return func(message []byte) bool {
		control.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, err := w.Write(message)
		return err == nil && control.Flush() == nil
	}
}

func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	p.lock.Lock()
	c := p.hub.join(auth.From(r.Context()).Holder())
	rest := p.helloRest()
	p.lock.Unlock()
	if c == nil {
		refuse(w, http.StatusServiceUnavailable,
			fmt.Sprintf("no place for one more page: %d in all, and no client may hold "+
				"more than are free; close one", p.opt.Streams))
		return
	}
	defer func() {
		p.lock.Lock()
		p.hub.leave(c)
		p.lock.Unlock()
	}()
	write := eventStream(w)
	for ok := write(append(p.greeting(auth.From(r.Context())), rest...)); ok; {
		select {
		case message, open := <-c.queue:
			if !open {
				write(event("bye", quote(c.why)))
				return
			}
			ok = write(message)
		case <-r.Context().Done():
			return
		}
	}
}
