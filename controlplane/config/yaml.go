// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// Document parses a text into its one document's root. Without one it calls fail and returns nil; line 0: no place.
func Document(data []byte, fail func(line int, format string, args ...any)) *yaml.Node {
	var doc, second yaml.Node
	reader := yaml.NewDecoder(bytes.NewReader(data))
	err := reader.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		fail(0, "the file is empty")
		return nil
	case err != nil:
		line, text := 0, err.Error()
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			line, _ = strconv.Atoi(m[1])
			text = text[len(m[0]):]
		}
		line = max(line, faultLine(data, text))
		fail(line, "not valid YAML: %s", yamlReason(data, line, text))
		return nil
	}
	if err := reader.Decode(&second); !errors.Is(err, io.EOF) {
		fail(second.Line, "a second document, or text after the first, is not read")
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		fail(0, "the file is empty")
		return nil
	}
	return doc.Content[0]
}

// mostSought is how long a text may be in which a fault's line is sought: it is parsed once for each bit of its lines.
const mostSought = 256 << 10

// faultLine is the first line up to which the text has the parser's fault; 0: not sought. Of a wrong indentation the
// parser names the line at which the list or mapping around it begins.
func faultLine(data []byte, fault string) int {
	if len(data) > mostSought {
		return 0
	}
	var ends []int
	for at := range bytes.Lines(data) {
		ends = append(ends, len(at))
	}
	for i := 1; i < len(ends); i++ {
		ends[i] += ends[i-1]
	}
	return 1 + sort.Search(len(ends), func(n int) bool {
		err := yaml.Unmarshal(data[:ends[n]], new(yaml.Node))
		return err != nil && strings.HasSuffix(err.Error(), fault)
	})
}
