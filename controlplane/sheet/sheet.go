// SPDX-License-Identifier: Apache-2.0

// Package sheet is shared by self-contained pages: colours, a style sheet, plots, tables to save. Each page is one file
// that needs nothing else; the charting library is in it.
package sheet

import (
	"crypto/sha256"
	_ "embed" // the style sheets and scripts
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
)

// Palette is the colours, light and dark, as a style sheet: of pages that people keep, and of the live page.
//
//go:embed palette.css
var Palette string

// Library is dygraphs, and LibraryStyle its style sheet, as they are published.
var (
	//go:embed dygraphs/dygraph.min.js
	Library string
	//go:embed dygraphs/dygraph.min.css
	LibraryStyle string
	//go:embed dygraphs/LICENSE.txt
	libraryLicence string
)

//go:embed sheet.css
var style string

//go:embed plots.js
var plots string

// script is the library with its licence in the place of the addresses in its comments, and what draws with it.
func script() string {
	code := []string{"/*\n" + libraryLicence + "*/"}
	for _, line := range strings.Split(Library, "\n") {
		if !strings.HasPrefix(line, "/*! @license ") && !strings.HasPrefix(line, "//# sourceMappingURL=") {
			code = append(code, line)
		}
	}
	return strings.Join(code, "\n") + "\n" + plots
}

// Head is a page's head. A browser loads nothing for such a page, and runs no script but ours.
func Head() template.HTML {
	s := script()
	sum := sha256.Sum256([]byte(s))
	return template.HTML(fmt.Sprintf("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "+
		"style-src 'unsafe-inline'; script-src 'sha256-%s'\">\n<style>%s</style>\n<script>%s</script>\n"+
		"<noscript><style>.plot { display: none; }</style></noscript>",
		base64.StdEncoding.EncodeToString(sum[:]), LibraryStyle+Palette+style, s))
}
