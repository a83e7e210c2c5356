// SPDX-License-Identifier: Apache-2.0

// Package backup puts what outlives a control plane into one file, and back onto this or another machine.
//
//	archive: tar with manifest.json, the members in its order, SHA256 (of all before it: manifest and members)
//	member:  its role: config, drop-in/NAME, state/NAME, named/KEY or applied/KEY (layout.go)
//
// Roles are restored, not paths. The configuration in the backup, the environment and the command line of the restoring
// machine say where a role's files go. An archive is taken whole or not at all: every octet of it
// counts, since what is read must be what would be written.
package backup

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"time"

	"isthmus/controlplane/archive"
)

const (
	// Format is written; it is the highest that is read.
	Format = 1

	folder       = "isthmus-backup"
	manifestName = "manifest.json"
	sumName      = "SHA256"
	mostManifest = 1 << 20
	mostMember   = 16 << 30 // bytes
)

// Manifest says what an archive is, and all that is in it.
type Manifest struct {
	Format   int       `json:"format"`
	Version  string    `json:"version"` // of the program that made it
	Node     string    `json:"node"`
	Taken    time.Time `json:"taken"`
	Recovery time.Time `json:"recovery"` // the Recovery Time Stamp; zero: there was no store of sessions
	DUID     string    `json:"duid"`     // of DHCPv6, where it was made of the machine's id; else empty
	Members  []Member  `json:"members"`
}

// Member is a file.
type Member struct {
	Role     string      `json:"role"`
	Path     string      `json:"path"` // where it was, for people
	Size     int64       `json:"size"`
	SHA256   string      `json:"sha256"`
	Mode     fs.FileMode `json:"mode"`
	Owner    string      `json:"owner"` // names; empty: unknown
	Group    string      `json:"group"`
	Modified time.Time   `json:"modified"`
}

// Backup is a manifest and its members' data, in the same order.
type Backup struct {
	Manifest Manifest
	Data     [][]byte
}

// add notes a member; its size and sum are those of the data.
func (b *Backup) add(m Member, data []byte) {
	sum := sha256.Sum256(data)
	m.Size, m.SHA256 = int64(len(data)), hex.EncodeToString(sum[:])
	b.Manifest.Members, b.Data = append(b.Manifest.Members, m), append(b.Data, data)
}

// of is the data of a role, nil without it.
func (b *Backup) of(role string) (data []byte, m *Member) {
	for i := range b.Manifest.Members {
		if m := &b.Manifest.Members[i]; m.Role == role {
			return b.Data[i], m
		}
	}
	return nil, nil
}

// Write writes the archive.
func (b *Backup) Write(w io.Writer) error {
	text, err := json.MarshalIndent(&b.Manifest, "", "  ")
	if err != nil {
		return err
	}
	_, err = b.write(w, append(text, '\n'))
	return err
}

// write is Write with a manifest's text; sum is what it writes as SHA256.
func (b *Backup) write(w io.Writer, manifest []byte) (sum string, err error) {
	all := sha256.New()
	out := archive.New(w, folder, b.Manifest.Taken)
	put := func(name string, data []byte) {
		all.Write(data)
		err = cmp.Or(err, out.Put(name, data))
	}
	put(manifestName, manifest)
	for i := range b.Data {
		put(b.Manifest.Members[i].Role, b.Data[i])
	}
	sum = hex.EncodeToString(all.Sum(nil))
	put(sumName, []byte(sum+"\n"))
	return sum, cmp.Or(err, out.Close())
}

// errDamaged is what a changed or cut archive gives.
var errDamaged = errors.New("the backup is damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errDamaged, fmt.Sprintf(format, args...))
}

// Read reads an archive to its end. What is not the archive that Write would write of its contents is an error.
func Read(r io.Reader) (*Backup, error) {
	in := &counted{r: r, sum: sha256.New()}
	files := tar.NewReader(in)
	manifest, err := next(files, manifestName, mostManifest)
	if err != nil {
		return nil, fmt.Errorf("this is no whole backup of isthmus: %w", err)
	}
	b := &Backup{}
	if err := b.readManifest(manifest); err != nil {
		return nil, err
	}
	for i := range b.Manifest.Members {
		m := &b.Manifest.Members[i]
		data, err := next(files, m.Role, m.Size)
		if err != nil {
			return nil, damaged("%s: %v", m.Role, err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != m.SHA256 {
			return nil, damaged("%s has another SHA-256 than the manifest says", m.Role)
		}
		b.Data = append(b.Data, data)
	}
	said, err := next(files, sumName, 2*sha256.Size+1)
	if err != nil {
		return nil, damaged("%s: %v", sumName, err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return nil, err
	}
	again := sha256.New()
	sum, err := b.write(again, manifest)
	switch {
	case err != nil:
		return nil, damaged("%v", err)
	case string(said) != sum+"\n":
		return nil, damaged("the manifest has another SHA-256 than %s says", sumName)
	case !bytes.Equal(again.Sum(nil), in.sum.Sum(nil)):
		return nil, damaged("something between its members, or behind them, is not as it was written")
	}
	return b, nil
}

func (b *Backup) readManifest(text []byte) error {
	var is struct {
		Format  int
		Version string
	}
	err := json.Unmarshal(text, &is)
	if err == nil && is.Format > Format {
		return fmt.Errorf("the backup is of format %d, by isthmus %q; this isthmus reads up to format %d: "+
			"install that version, or a newer one", is.Format, is.Version, Format)
	}
	if err == nil {
		err = json.Unmarshal(text, &b.Manifest)
	}
	if err == nil && is.Format != Format {
		err = fmt.Errorf("format %d", is.Format)
	}
	seen := map[string]bool{}
	for _, m := range b.Manifest.Members {
		if err == nil && (seen[m.Role] || m.Size < 0 || m.Size > mostMember) {
			err = fmt.Errorf("%q is there twice, or too large", m.Role)
		}
		seen[m.Role] = true
	}
	if err != nil {
		return damaged("%s: %v", manifestName, err)
	}
	return nil
}

// next is the next file of an archive, which must have this name, and not more than most bytes.
func next(files *tar.Reader, name string, most int64) ([]byte, error) {
	h, err := files.Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("there is no %s", name)
	case err != nil:
		return nil, err
	case h.Name != path.Join(folder, name) || h.Typeflag != tar.TypeReg:
		return nil, fmt.Errorf("%.80q is in the place of %s", h.Name, name)
	case h.Size > most:
		return nil, fmt.Errorf("%d bytes, not %d", h.Size, most)
	}
	var data bytes.Buffer // it grows with what is there, not with what a header says
	_, err = io.Copy(&data, files)
	return data.Bytes(), err
}

// counted sums what is read. It hides that a file can seek: all octets are read.
type counted struct {
	r   io.Reader
	sum hash.Hash
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.sum.Write(p[:n])
	return n, err
}
