// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"isthmus/api"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/store"
)

// Contents counts a store's records, and unreadable ones.
type Contents struct {
	Boot                                                                    string
	Recovery                                                                time.Time
	Associations, Applications, Sessions, Usages, Lines, Accounts, Readings int
	Faults                                                                  []error
}

// Inspect reads a store, which may be in use, and writes each record as one line of JSON; out may be nil.
func Inspect(path string, out io.Writer) (c Contents, err error) {
	var failed error
	c.Recovery, c.Boot, err = store.Read(path, func(r store.Record) error {
		what, value, bad := inspect(r)
		if bad != nil {
			c.Faults = append(c.Faults, fmt.Errorf("record %d of kind %d: %w", r.Number, r.Kind, bad))
			return nil
		}
		switch r.Kind {
		case store.Association:
			c.Associations++
		case store.Application:
			c.Applications++
		case store.Session:
			c.Sessions++
		case store.Usage:
			c.Usages++
		case store.Line:
			c.Lines++
		case store.Account:
			c.Accounts++
		case store.Reading:
			c.Readings++
		}
		if out != nil && failed == nil {
			failed = json.NewEncoder(out).Encode(map[string]any{what: value})
		}
		return nil
	})
	return c, errors.Join(err, failed)
}

// inspect decodes a record.
func inspect(r store.Record) (what string, value any, err error) {
	switch r.Kind {
	case store.Session:
		value, err = rules.Decode(r.Data)
		return "session", value, err
	case store.Usage:
		value, err = api.DecodeAll[api.Usage](r.Data)
		return "usage", value, err
	case store.Association:
		value, err = decodeAssociation(r.Data)
		return "association", value, err
	case store.Application:
		value, err = decodeApplication(r.Data)
		return "application", value, err
	case store.Reading:
		var list readings
		err = list.read(r.Data)
		return "reading", list.usage(r.Number), err
	case store.Account:
		return "accounting", r.Data, nil
	case store.Line:
		if !json.Valid(r.Data) {
			return "", nil, rules.ErrEncoding
		}
		return "line", json.RawMessage(r.Data), nil
	}
	return "", nil, errors.New("of an unknown kind")
}
