// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"slices"

	"isthmus/controlplane/internal/config"
	"isthmus/controlplane/internal/intent"
)

// Plan is one accepted configuration: its text and the objects it compiles to. Never changed once made.
type Plan struct {
	File      string
	Text      []byte
	Control   config.Control
	HugePages string // auto, on, off
	Objects   intent.State
}

// LoadPlan reads and compiles a file.
func LoadPlan(file string) (*Plan, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return MakePlan(file, data)
}

// MakePlan compiles text; file is only for messages.
func MakePlan(file string, data []byte) (*Plan, error) {
	c, err := config.Parse(file, data)
	if err != nil {
		return nil, err
	}
	objects, err := intent.Compile(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &Plan{File: file, Text: slices.Clone(data), Control: c.Control, HugePages: c.Engine.HugePages, Objects: objects}, nil
}

// DPArguments are the arguments with which this configuration's data plane is started.
func DPArguments(socket string, plan *Plan) []string {
	huge := map[string]string{"on": "yes", "off": "no"}[plan.HugePages]
	return []string{"--socket", socket, "--huge", first(huge, "auto")}
}
