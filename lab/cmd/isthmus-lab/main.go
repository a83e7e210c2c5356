// SPDX-License-Identifier: Apache-2.0

// Isthmus-lab is the laboratory: benchmarks, emulated mobile networks, session load.
package main

import (
	"os"

	"isthmus/lab/cli"
)

func main() {
	os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
