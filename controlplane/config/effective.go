// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"reflect"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Effective is a text as it is in effect: one document, with drop-ins laid over each other, values and overrides of the
// environment, and the CPUs that auto chose. Like Shown it has neither secrets nor comments. ParseShown reads it
// anywhere.
func Effective(site Site, text []byte) ([]byte, error) {
	c, err := ParseOn(site, "configuration", text, nil)
	if err != nil {
		return nil, err
	}
	d := &decoder{file: "configuration"}
	root := d.layers(text, site.Environ)
	if err := d.errs.result(); err != nil {
		return nil, err
	}
	plain, budget := plainTree(root, new(int))
	if !budget {
		return nil, errors.New("the configuration is too large to be shown: aliases repeat too much")
	}
	d.settings = nil
	d.environment(&Config{}, site.Environ)
	for _, s := range d.settings {
		put(plain, s.path, &yaml.Node{Kind: yaml.ScalarNode, Value: s.value, Style: yaml.DoubleQuotedStyle})
	}
	if c.Engine.AutoCPUs {
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, cpu := range c.Engine.CPUs {
			list.Content = append(list.Content, number(cpu))
		}
		put(plain, []string{"engine", "cpus"}, list)
		put(plain, []string{"engine", "workers"}, number(int(c.Engine.Workers)))
	}
	(&hider{seen: map[hidden]bool{}, all: true}).hide(plain, reflect.TypeFor[Config](), false)
	escapeTree(plain)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err = encoder.Encode(plain)
	return out.Bytes(), err
}

// setting is a value of the environment in place of the file's.
type setting struct {
	path  []string
	value string
}

func number(n int) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.Itoa(n)} }

// plainTree is a copy without aliases, anchors and comments; false: it would be too large.
func plainTree(n *yaml.Node, visited *int) (*yaml.Node, bool) {
	n = target(n)
	if *visited++; *visited > maxNodes {
		return nil, false
	}
	out := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value}
	for _, one := range n.Content {
		copied, ok := plainTree(one, visited)
		if !ok {
			return nil, false
		}
		out.Content = append(out.Content, copied)
	}
	return out, true
}

// put sets a key below a mapping, and makes the mappings on the way.
func put(n *yaml.Node, path []string, value *yaml.Node) {
	if isNull(n) {
		*n = yaml.Node{Kind: yaml.MappingNode}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == path[0] {
			if len(path) == 1 {
				n.Content[i+1] = value
			} else {
				put(n.Content[i+1], path[1:], value)
			}
			return
		}
	}
	below := value
	if len(path) > 1 {
		below = &yaml.Node{Kind: yaml.MappingNode}
		put(below, path[1:], value)
	}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: path[0]}, below)
}

// escapeTree has values mean themselves where they look like references.
func escapeTree(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		n.Value = escape(n.Value)
	}
	for _, one := range n.Content {
		escapeTree(one)
	}
}
