// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"isthmus/controlplane/sheet"
)

//go:embed assets/*.html assets/*.js assets/*.css
var files embed.FS

// assets serves the page's files, which never change while the process runs.
type assets struct {
	files map[string]string
	tag   string // of all of them
}

func loadAssets() *assets {
	a := &assets{files: map[string]string{
		// The pages that people keep have these, too.
		"palette.css":            sheet.Palette,
		"vendor/dygraph.min.js":  sheet.Library,
		"vendor/dygraph.min.css": sheet.LibraryStyle,
	}}
	list, err := files.ReadDir("assets")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	for _, entry := range list {
		data, _ := fs.ReadFile(files, "assets/"+entry.Name()) // so is the file
		a.files[entry.Name()] = string(data)
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(a.files)) {
		sum.Write([]byte(a.files[name]))
	}
	a.tag = `"` + hex.EncodeToString(sum.Sum(nil)[:8]) + `"`
	return a
}

func (a *assets) file(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		content, known := a.files[name]
		if !known { // nothing is listed
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", a.tag)
		http.ServeContent(w, r, name, time.Time{}, strings.NewReader(content))
	}
}

func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	a.file(strings.TrimPrefix(r.URL.Path, "/assets/"))(w, r)
}
