// SPDX-License-Identifier: Apache-2.0

//go:build tools

package peers

import (
	_ "github.com/omec-project/pfcpsim/cmd/pfcpctl"
	_ "github.com/omec-project/pfcpsim/cmd/pfcpsim"
)
