// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// ConfigBegins marks the configuration in the first comment of a capture.
const ConfigBegins = "configuration:\n"

// macBegins marks the line of a port and its MAC address in that comment.
const macBegins = "port "

// mostConfig is what a capture's comment holds of a configuration.
const mostConfig = 60000

// ConfigComment is the comment with which a capture begins; macs are the ports' addresses. Of a configuration that is
// too long there is nothing but a word: half of one would not be what was in force.
func ConfigComment(config []byte, macs map[string]string, at time.Time) string {
	text := "captured at " + at.UTC().Format(time.RFC3339) + "\n"
	for _, port := range slices.Sorted(maps.Keys(macs)) {
		text += macBegins + port + " " + macs[port] + "\n"
	}
	if len(config) > mostConfig {
		return text + "the configuration is too long for a comment"
	}
	return text + ConfigBegins + string(config)
}

// Split writes what a capture needs to be replayed into a folder: the configuration that was in force, and the frames
// that each port received, as pcap. It returns the configuration's file and the files by port.
func Split(path, dir string) (config string, in map[string]string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	text, err := configOf(data)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	config = filepath.Join(dir, "isthmus.yaml")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return "", nil, err
	}
	type received struct {
		at    time.Time
		frame []byte
	}
	files := map[string][]received{}
	err = ReadFrames(bytes.NewReader(data), func(port string, at time.Time, frame []byte) error {
		files[port] = append(files[port], received{at, frame})
		return nil
	})
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	in = map[string]string{}
	for port, frames := range files {
		// In the file they stand as they ended.
		slices.SortStableFunc(frames, func(a, b received) int { return a.at.Compare(b.at) })
		b := pcapHeader()
		for _, f := range frames {
			b = append(b, pcapRecord(f.at, f.frame)...)
		}
		in[port] = filepath.Join(dir, fmt.Sprintf("in-%d.pcap", len(in)))
		if err := os.WriteFile(in[port], b, 0o600); err != nil {
			return "", nil, err
		}
	}
	return config, in, nil
}

func configOf(data []byte) ([]byte, error) {
	if len(data) < 28 || binary.LittleEndian.Uint32(data) != blockSection {
		return nil, errors.New("this is no capture of isthmus capture")
	}
	length := binary.LittleEndian.Uint32(data[4:])
	if length < 28 || int64(length) > int64(len(data)) {
		return nil, io.ErrUnexpectedEOF
	}
	head, text, ok := bytes.Cut(options(data[24 : length-4])[optComment], []byte(ConfigBegins))
	if !ok {
		return nil, errors.New("it has no configuration; give one with --config, and pcap files with --in")
	}
	macs := map[string]string{}
	for line := range strings.Lines(string(head)) {
		if rest, ok := strings.CutPrefix(line, macBegins); ok {
			if port, mac, ok := strings.Cut(strings.TrimSpace(rest), " "); ok {
				macs[port] = mac
			}
		}
	}
	return withMACs(text, macs)
}

// withMACs gives ports of a configuration the addresses that their devices had, where it says none: the frames of the
// capture are for these.
func withMACs(config []byte, macs map[string]string) ([]byte, error) {
	var file map[string]any
	if err := yaml.Unmarshal(config, &file); err != nil {
		return nil, err
	}
	ports, _ := file["ports"].([]any)
	for _, p := range ports {
		port, _ := p.(map[string]any)
		name, _ := port["name"].(string)
		if _, said := port["mac"]; !said && macs[name] != "" {
			port["mac"] = macs[name]
		}
	}
	return yaml.Marshal(file)
}

// pcapHeader begins a pcap file with nanoseconds and frames of Ethernet.
func pcapHeader() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b23c4d)
	b = binary.LittleEndian.AppendUint32(b, 4<<16|2)
	b = append(b, make([]byte, 8)...)
	b = binary.LittleEndian.AppendUint32(b, 65535)
	return binary.LittleEndian.AppendUint32(b, linkEthernet)
}

func pcapRecord(at time.Time, frame []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(at.Unix()))
	b = binary.LittleEndian.AppendUint32(b, uint32(at.Nanosecond()))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frame)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frame)))
	return append(b, frame...)
}
