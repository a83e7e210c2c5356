// SPDX-License-Identifier: Apache-2.0

// Isthmus is the control plane and the command line of the gateway.
package main

import (
	"os"

	"isthmus/controlplane/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
