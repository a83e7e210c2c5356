// SPDX-License-Identifier: Apache-2.0

// Isthmus-traffic sends packets through a gateway and checks those that return (lab/traffic).
package main

import (
	"os"

	"isthmus/lab/traffic"
)

func main() { os.Exit(traffic.Main()) }
