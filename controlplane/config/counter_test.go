// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

func TestCountersRefused(t *testing.T) {
	mustParse(t, base+"counters:\n  - {name: a}\n")
	for _, row := range []struct{ counter, want string }{
		{"{name: a, each: true}", "x.yaml:9: counters[0].watermark: missing"},
		{"{name: a, period: 60}", "counters[0].watermark: missing"},
		{"{name: a, watermark: {bytes: -1}}", "counters[0].watermark.bytes"},
		{"{name: a, match: {ue: 10.45.0.1/16}}", "counters[0].match.ue: 10.45.0.1/16 has host bits set"},
		{"{name: a, match: {instance: nowhere}}", `there is no network instance "nowhere"`},
		{"{name: a}\n  - {name: a}", `counters[1].name: "a" is already in line 9`},
	} {
		_, err := Parse("x.yaml", []byte(base+"counters:\n  - "+row.counter+"\n"))
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", row.counter, err, row.want)
		}
	}
	_, err := Parse("x.yaml", []byte(subscriberOf("name: a, ipv4: 10.5.0.1, counter: nobody")))
	if err == nil || !strings.Contains(err.Error(), `there is no counter "nobody"`) {
		t.Error(err)
	}
}
