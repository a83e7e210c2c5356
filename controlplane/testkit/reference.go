// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Page is a page of docs/reference: a test named TestReference… makes it from the code. `./dev lint reference` runs
// these tests, `./dev lint --fix` writes the pages.
type Page struct{ text strings.Builder }

// Text is a paragraph.
func (p *Page) Text(format string, args ...any) { fmt.Fprintf(&p.text, "\n"+format+"\n", args...) }

// Section begins one.
func (p *Page) Section(title string) { p.Text("## %s", title) }

// Table has titles with | between them. It is left out when it has no rows.
func (p *Page) Table(titles string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	p.Text("| %s |\n|%s", titles, strings.Repeat("---|", strings.Count(titles, "|")+1))
	clean := strings.NewReplacer("|", `\|`, "\n", " ")
	for _, row := range rows {
		for i, cell := range row {
			row[i] = clean.Replace(cell)
		}
		fmt.Fprintf(&p.text, "| %s |\n", strings.Join(row, " | "))
	}
}

// Compare holds the page against docs/reference/FILE.
func (p *Page) Compare(t testing.TB, file, title string) {
	t.Helper()
	Golden(t, filepath.Join(Top(t), "docs/reference", file),
		"# "+title+"\n\n<!-- Made from the code by `./dev lint --fix`. -->\n"+p.text.String())
}

// Top is the repository's folder.
func Top(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	Must(t, err)
	for dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above")
	return ""
}

// Sentence is a text with a capital letter and a full stop, but a name such as isthmus-dp at its beginning stays as it
// is; empty stays empty.
func Sentence(text string) string {
	text = strings.TrimSuffix(strings.TrimSpace(text), ".")
	if text == "" {
		return ""
	}
	if word, _, _ := strings.Cut(text, " "); !strings.ContainsAny(word, "-_./") {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text + "."
}

// Comments are those of the fields of structs (package.Type.Field) and of constants (package.name) in the Go files of
// folders: behind them or, without one, above.
func Comments(t testing.TB, folders ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		FatalIf(t, err != nil || len(files) == 0, "%s: %v", folder, err)
		for _, file := range files {
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			Must(t, err)
			note := func(name string, behind, above *ast.CommentGroup) {
				text := behind.Text()
				if text == "" {
					text = above.Text()
				}
				all[tree.Name.Name+"."+name] = strings.Join(strings.Fields(text), " ")
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					if s, ok := n.Type.(*ast.StructType); ok {
						for _, f := range s.Fields.List {
							for _, name := range f.Names {
								note(n.Name.Name+"."+name.Name, f.Comment, f.Doc)
							}
						}
					}
				case *ast.ValueSpec:
					for _, name := range n.Names {
						note(name.Name, n.Comment, n.Doc)
					}
				}
				return true
			})
		}
	}
	return all
}
