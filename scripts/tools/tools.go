// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins the versions of the programs that `./dev lint` runs (built by `./dev setup` into .tools/bin).
package tools

import (
	_ "golang.org/x/vuln/cmd/govulncheck"
	_ "honnef.co/go/tools/cmd/staticcheck"
)
