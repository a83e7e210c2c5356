// SPDX-License-Identifier: Apache-2.0

// Package plan makes, compares and keeps plans: accepted, compiled configurations. Nothing here is in effect.
package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"isthmus/controlplane/aaa"
	"isthmus/controlplane/config"
	"isthmus/controlplane/intent"
	"isthmus/controlplane/kernel"
	"isthmus/controlplane/rules"
)

// Plan is one accepted configuration: its text and the objects it compiles to. Never changed once it runs.
type Plan struct {
	File       string
	Text       []byte   // of all files (config.Read)
	DropIns    []string // beside File
	Control    config.Control
	HugePages  string // auto, on, off
	CPUs       []int  // of the workers, where engine.cpus is auto; else nil
	Placed     string // where auto put them, for people
	Limits     config.Limits
	Objects    intent.State
	Placement  config.Placement // for the plan after this one
	PFCP       *config.PFCP     // nil: none (tests)
	Settings   *rules.Settings  // of mobile sessions
	Instances  []config.Instance
	NATLog     config.NATLog
	Clones     []kernel.Clone
	Announcing map[string]Announcing // by instance
	SignIn     *config.Config        // configuration of sign-in; nil: none
	Ports      []config.Port
	Narrow     []config.Narrow
	Applied    bool // brought by `config apply`, not read from the control plane's own file
}

// Prepared is the part of a plan that may fail on this machine, done. It must be taken, or given up.
type Prepared interface {
	Take(ctx context.Context) (note string) // what does not succeed
	Discard()
}

// Load reads and compiles a file.
func Load(file string) (*Plan, error) { return MakeWith(file, nil, config.Here(), nil) }

// Next makes the plan after this one, of a text or else of a file. Subscribers and, with engine.cpus auto, workers keep
// their places.
func (p *Plan) Next(file string, data []byte) (*Plan, error) {
	return MakeWith(file, data, p.site(), p.Placement)
}

// Check verifies that this machine has the files and addresses that the plan names for sign-in. Nothing stays in use.
func (p *Plan) Check() error {
	if p.SignIn == nil {
		return nil
	}
	if err := aaa.Check(p.SignIn); err != nil {
		return err
	}
	return areHere(p.SignIn)
}

// Make compiles text as it stands, without the environment; file is only for messages.
func Make(file string, data []byte) (*Plan, error) { return MakeWith(file, data, config.Site{}, nil) }

// MakeWith compiles text, or else the file's. Unchanged subscribers keep their pipes.
func MakeWith(file string, data []byte, site config.Site, before config.Placement) (*Plan, error) {
	if data == nil {
		var err error
		if data, err = config.Read(file); err != nil {
			return nil, err
		}
	}
	c, err := config.ParseOn(site, file, data, before)
	if err != nil {
		return nil, err
	}
	objects, err := intent.Compile(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := noDynamic(objects); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	announced, cpus := announcingOf(c), []int(nil)
	if c.Engine.AutoCPUs {
		cpus = c.Engine.CPUs
	}
	return &Plan{File: file, Text: slices.Clone(data), DropIns: config.Files(data), Control: c.Control,
		HugePages: c.Engine.HugePages, Limits: c.Engine.Limits, CPUs: cpus, Placed: c.Engine.Placed(),
		PFCP: &c.PFCP, SignIn: signInOf(c), Settings: sessionSettings(c), NATLog: c.NATLog, Instances: c.Instances,
		Objects:   objects,
		Placement: c.Placement(), Clones: clonesOf(c, announced), Announcing: announced,
		Ports: c.Ports, Narrow: c.Narrow}, nil
}

// noDynamic refuses names that sessions over PFCP use.
func noDynamic(objects intent.State) error {
	for i := range objects {
		if name := objects[i].Name(); rules.Dynamic(objects[i].Kind, name) {
			return errors.New(name + ": names that begin with " + rules.Prefix + " are kept for sessions over PFCP")
		}
	}
	return nil
}
