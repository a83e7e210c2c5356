// SPDX-License-Identifier: Apache-2.0

// Package pagetest is a browser for tests of the live page and of what serves it.
package pagetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"isthmus/controlplane/testkit"
)

// Browser is headless Chromium, driven by the DevTools protocol over a pipe: JSON messages, each with a zero octet
// behind it, on descriptors 3 (to it) and 4 (from it).
type Browser struct {
	t       testing.TB
	to      *os.File
	session string

	lock    sync.Mutex
	last    int
	waiting map[int]chan json.RawMessage
	console []string // errors and warnings, of any script, and a crash of the tab
}

type cdpMessage struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
}

// Start starts a browser with one empty tab, and ends it with the test. It accepts any certificate.
func Start(t testing.TB) *Browser {
	t.Helper()
	program, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		t.Skip("no chromium-headless-shell here; ./dev setup installs it")
	}
	theirs, to, err := os.Pipe()
	testkit.Must(t, err)
	from, mine, err := os.Pipe()
	testkit.Must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 5*testkit.Limit)
	cmd := exec.CommandContext(ctx, program, "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-dev-shm-usage", "--ignore-certificate-errors",
		"--js-flags=--expose-gc", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir())
	cmd.ExtraFiles = []*os.File{theirs, mine}
	testkit.Must(t, cmd.Start())
	theirs.Close()
	mine.Close()
	b := &Browser{t: t, to: to, waiting: map[int]chan json.RawMessage{}}
	done := make(chan struct{})
	go b.read(from, done)
	t.Cleanup(func() {
		to.Close() // which ends it
		<-done
		cmd.Wait()
		cancel()
	})
	var target struct {
		TargetID  string `json:"targetId"`
		SessionID string `json:"sessionId"`
	}
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Performance", "HeapProfiler", "Inspector"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

func (b *Browser) read(from *os.File, done chan<- struct{}) {
	defer close(done)
	defer from.Close()
	r := bufio.NewReader(from)
	for {
		data, err := r.ReadBytes(0)
		if err != nil {
			b.lock.Lock()
			defer b.lock.Unlock()
			for id, c := range b.waiting {
				close(c)
				delete(b.waiting, id)
			}
			b.waiting = nil
			return
		}
		var m cdpMessage
		if json.Unmarshal(data[:len(data)-1], &m) != nil {
			continue
		}
		b.lock.Lock()
		switch {
		case m.ID != 0:
			if c := b.waiting[m.ID]; c != nil {
				delete(b.waiting, m.ID)
				if m.Error != nil {
					m.Result = m.Error
				}
				c <- m.Result
			}
		case m.Method == "Runtime.consoleAPICalled", m.Method == "Runtime.exceptionThrown",
			m.Method == "Log.entryAdded", m.Method == "Inspector.targetCrashed":
			b.console = append(b.console, m.Method+string(m.Params))
		}
		b.lock.Unlock()
	}
}

// call sends one command and waits for its answer.
func (b *Browser) call(method string, params, result any) {
	b.t.Helper()
	raw, err := json.Marshal(params)
	testkit.Must(b.t, err)
	answer := make(chan json.RawMessage, 1)
	b.lock.Lock()
	if b.waiting == nil {
		b.lock.Unlock()
		b.t.Fatal("the browser has ended")
	}
	b.last++
	message, err := json.Marshal(cdpMessage{ID: b.last, SessionID: b.session, Method: method, Params: raw})
	b.waiting[b.last] = answer
	b.lock.Unlock()
	testkit.Must(b.t, err)
	_, err = b.to.Write(append(message, 0))
	testkit.Must(b.t, err)
	data, ok := <-answer
	testkit.FatalIf(b.t, !ok, "%s: the browser has ended", method)
	if result != nil {
		testkit.Must(b.t, json.Unmarshal(data, result))
	}
}

// Eval runs a script in the page and returns its value; a promise is waited for.
func Eval[T any](b *Browser, script string) T {
	b.t.Helper()
	var answer struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		ExceptionDetails json.RawMessage `json:"exceptionDetails"`
	}
	b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true},
		&answer)
	var v T
	testkit.FatalIf(b.t, answer.ExceptionDetails != nil, "%s: %s", script, answer.ExceptionDetails)
	if answer.Result.Value != nil { // undefined, or the page went meanwhile
		testkit.Must(b.t, json.Unmarshal(answer.Result.Value, &v))
	}
	return v
}

// Until waits until a script's value is true. If it never is, the log shows the browser's state.
func (b *Browser) Until(what, script string) {
	b.t.Helper()
	ok := false
	defer func() {
		if !ok {
			b.t.Log(Eval[string](b,
				"`${location} ${document.readyState}: ${document.body?.innerText}`.slice(0, 800)"))
			b.Quiet()
		}
	}()
	testkit.Until(b.t, what, func() bool { return Eval[bool](b, "Boolean("+script+")") })
	ok = true
}

// Size makes the window so large, light or dark.
func (b *Browser) Size(width, height int, scheme string) {
	b.call("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Emulation.setScrollbarsHidden", map[string]any{"hidden": true}, nil) // of a picture as of a telephone
	b.call("Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Open goes to a page, and waits for it.
func (b *Browser) Open(url string) {
	Eval[string](b, `window.former = ""`) // this document's, until it is gone
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.Until("the page is loaded",
		`window.former === undefined && document.readyState === "complete" && document.getElementById("main")`)
}

// Press presses a key: "Tab", "Enter", " ", with Shift where it is so called: "Shift+Tab".
func (b *Browser) Press(key string) {
	name, shifted := strings.CutPrefix(key, "Shift+")
	event := map[string]any{"type": "keyDown", "key": name, "code": name,
		"windowsVirtualKeyCode": map[string]int{"Tab": 9, "Enter": 13, " ": 32}[name]}
	if name != "Tab" {
		event["text"] = map[string]string{"Enter": "\r", " ": " "}[name]
	}
	if shifted {
		event["modifiers"] = 8
	}
	b.call("Input.dispatchKeyEvent", event, nil)
	event["type"] = "keyUp"
	delete(event, "text")
	b.call("Input.dispatchKeyEvent", event, nil)
}

// Roles are what a screen reader gets: the names of elements, by role.
func (b *Browser) Roles() map[string][]string {
	b.t.Helper()
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
		}
	}
	b.call("Accessibility.getFullAXTree", nil, &tree)
	names := map[string][]string{}
	for _, n := range tree.Nodes {
		if !n.Ignored {
			role := fmt.Sprint(n.Role.Value)
			name, _ := n.Name.Value.(string)
			names[role] = append(names[role], name)
		}
	}
	return names
}

// Overflow is by how many columns the page is wider than the window.
func (b *Browser) Overflow() int {
	return Eval[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
}

// Shot keeps a picture of the whole page among the artifacts of the run, if the environment names their folder.
func (b *Browser) Shot(name string) {
	b.picture(name+".png", map[string]any{"captureBeyondViewport": true})
}

// Window keeps a picture of what the window shows, small enough for a document.
func (b *Browser) Window(name string) {
	b.picture(name+".webp", map[string]any{"format": "webp", "quality": 80})
}

func (b *Browser) picture(file string, how map[string]any) {
	folder := os.Getenv("ARTIFACTS")
	if folder == "" {
		return
	}
	var picture struct {
		Data []byte `json:"data"`
	}
	b.call("Page.captureScreenshot", how, &picture)
	testkit.Must(b.t, os.WriteFile(filepath.Join(folder, file), picture.Data, 0o644))
}

// Heap is what scripts hold after a collection, in octets.
func (b *Browser) Heap() float64 {
	b.call("HeapProfiler.collectGarbage", nil, nil)
	var answer struct {
		Metrics []struct {
			Name  string  `json:"name"`
			Value float64 `json:"value"`
		} `json:"metrics"`
	}
	b.call("Performance.getMetrics", nil, &answer)
	for _, m := range answer.Metrics {
		if m.Name == "JSHeapUsedSize" {
			return m.Value
		}
	}
	b.t.Fatal("the browser does not say how large its heap is")
	return 0
}

// Quiet fails when the console has anything.
func (b *Browser) Quiet() {
	b.t.Helper()
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, line := range b.console {
		b.t.Errorf("console: %.400s", line)
	}
}
