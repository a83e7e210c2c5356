// SPDX-License-Identifier: Apache-2.0

package config

// Counter adds up what subscribers or sessions forward.
type Counter struct {
	At        `yaml:""`
	Name      Name         `yaml:"name" req:"true" doc:"The counter's name."`
	Watermark Watermark    `yaml:"watermark" doc:"Raises an event, once a period; absent: none."`
	Period    uint32       `yaml:"period" max:"31536000" doc:"Seconds until the watermark counts from 0 again; 0: never."`
	Each      bool         `yaml:"each" doc:"The watermark is that of each session by itself, not of their sum."`
	Match     CounterMatch `yaml:"match" doc:"What counts, beside subscribers that name the counter."`
}

// Watermark: whichever is reached first.
type Watermark struct {
	At      `yaml:""`
	Bytes   uint64 `yaml:"bytes" doc:"Bytes of IP packets, both directions."`
	Packets uint64 `yaml:"packets" doc:"Packets, both directions."`
}

// CounterMatch says which sessions count.
type CounterMatch struct {
	At       `yaml:""`
	UE       Prefix `yaml:"ue" doc:"Sessions whose UE address lies in it."`
	Instance Name   `yaml:"instance" doc:"Sessions that send to this network instance, or have UE addresses there."`
}

func (c *Counter) check(k *checker) {
	k.notDynamic(c.At, c.Name)
	if marked := c.Watermark.Bytes != 0 || c.Watermark.Packets != 0; !marked && (c.Each || c.Period != 0) {
		k.fail(c.At, "watermark", "missing: each and period are of a watermark")
	}
	k.network(c.Match.At, "ue", c.Match.UE)
	refer(k, c.Match.At, "instance", "network instance", c.Match.Instance, k.instances)
}
