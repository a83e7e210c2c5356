// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

// On a terminal: it draws, takes keys, and leaves the terminal as it was.
func TestOnATerminal(t *testing.T) {
	keys, terminal := testkit.Pty(t)
	screen := testkit.Screen(keys)
	sees := func(text string) bool { return strings.Contains(screen(), text) }
	get := func(_ context.Context, path string, _ url.Values) ([]byte, error) {
		if path == "/v1/status" {
			return []byte(`{"data_plane":"ready","version":"v1.2"}`), nil
		}
		return []byte(`[{"name":"n6","rx_packets":5,"packets":1}]`), nil
	}
	done := make(chan error, 1)
	go func() {
		done <- Run(context.Background(), terminal, terminal, get, NewModel(250*time.Millisecond),
			false)
	}()
	testkit.Until(t, "the first screen", func() bool { return sees("[overview]") && sees("n6") })
	_, err := keys.WriteString("\x1b[C")
	testkit.Must(t, err)
	testkit.Until(t, "ports", func() bool { return sees("[ports]") })
	_, err = keys.WriteString("p")
	testkit.Must(t, err)
	testkit.Until(t, "the pause", func() bool { return sees("PAUSED") })
	_, err = keys.WriteString("q")
	testkit.Must(t, err)
	testkit.Must(t, testkit.Receive(t, done))
	testkit.Until(t, "the former screen", func() bool { return sees(leave) })
}

func TestSparkline(t *testing.T) {
	testkit.Equal(t, sparkline([]float64{9, 0, 7, 3.5}, 3), "▁█▅", "the last three")
	testkit.Equal(t, sparkline([]float64{0, 0}, 9), "▁▁", "nothing")
	testkit.Equal(t, sparkline([]float64{1}, 9), "", "one")
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		90 * time.Second: "1m30s", 3*time.Hour + 59*time.Minute: "3h59m", 49 * time.Hour: "2d1h",
	} {
		testkit.Equal(t, age(d), want, "%s", d)
	}
}
