// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"isthmus/controlplane/sheet"
)

// The folder vendor is filled by ./dev, from Debian's packages; it is not in the repository.
//
//go:embed assets
var files embed.FS

// assets serves the files that the page is made of. They are the same as long as the process runs.
type assets struct {
	root fs.FS
	tag  string // of all of them
}

func loadAssets() *assets {
	root, err := fs.Sub(files, "assets")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	sum := sha256.New()
	sum.Write([]byte(sheet.Palette))
	fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, _ := fs.ReadFile(root, name)
			sum.Write(data)
		}
		return err
	})
	return &assets{root, `"` + hex.EncodeToString(sum.Sum(nil)[:8]) + `"`}
}

func (a *assets) file(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", a.tag)
		http.ServeFileFS(w, r, a.root, name)
	}
}

// palette is that of the pages that people keep, too.
func (a *assets) palette(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", a.tag)
	http.ServeContent(w, r, "palette.css", time.Time{}, strings.NewReader(sheet.Palette))
}

func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/assets/")
	if info, err := fs.Stat(a.root, name); err != nil || info.IsDir() {
		http.NotFound(w, r) // no listing, and no name that no file can have
		return
	}
	a.file(name)(w, r)
}
