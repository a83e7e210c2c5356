// SPDX-License-Identifier: Apache-2.0

// Package sheet is what pages that people keep have in common: colours, a style sheet, pictures of lines and bars with
// nice numbers beside them. Pages are one file each and need nothing else.
package sheet

import _ "embed" // the style sheets

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
)

//go:embed plot.css
var plotStyle string

//go:embed sheet.css
var style string

// Style is the style sheet of a page that somebody keeps. Pictures are of class plot.
func Style() string { return Palette + plotStyle + style }
