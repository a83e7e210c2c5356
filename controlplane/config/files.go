// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"syscall"
)

// ReadFile reads a file that the configuration names. An applied configuration may name any file: a file that blocks or
// never ends is refused.
func ReadFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	return data, err
}

var verbs = regexp.MustCompile(`%[a-z]`)

// withoutValues is the text of a reason, with … where it would quote a file.
func withoutValues(format string) string { return verbs.ReplaceAllString(format, "…") }

// Named is a file that the configuration names at a key, such as radius.servers[0].secret_file.
type Named struct{ Key, Path string }

// Named are the files that are read beside the configuration: users, secrets, certificates, in the order of its keys.
func (c *Config) Named() []Named { return filesOf(reflect.ValueOf(c).Elem(), "", nil) }

func filesOf(v reflect.Value, path string, list []Named) []Named {
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			list = filesOf(v.Index(i), path+"["+strconv.Itoa(i)+"]", list)
		}
		return list
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch key := join(path, f.Tag.Get("yaml")); {
		case f.Tag.Get("file") == "true" && v.Field(i).String() != "":
			list = append(list, Named{key, v.Field(i).String()})
		case namesFiles(f.Type) && f.Tag.Get("yaml") != "-":
			list = filesOf(v.Field(i), key, list)
		}
	}
	return list
}

// namesFiles: a section, or one below it, may name files.
func namesFiles(t reflect.Type) bool {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("file") == "true" || f.Tag.Get("yaml") != "" && namesFiles(f.Type) {
			return true
		}
	}
	return false
}
