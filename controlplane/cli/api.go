// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/hex"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"isthmus/controlplane/agent/serve"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/command"
)

func apiCommand(e *env) *cobra.Command {
	api := command.Group(&cobra.Command{Use: "api", Short: "the HTTP API",
		Example: "  isthmus api describe >openapi.json"})
	api.AddCommand(&cobra.Command{
		Use: "describe", Short: "print its OpenAPI 3.1 document",
		Example: "  isthmus api describe >openapi.json", Args: cobra.NoArgs,
		RunE: command.Failed(func(*cobra.Command, []string) error {
			doc, err := serve.OpenAPI()
			if err == nil {
				_, err = e.Out.Write(doc)
			}
			return err
		}),
	})
	return api
}

// tokenName is what the configuration takes as a name.
var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,30}$`)

func tokenCommand(e *env) *cobra.Command {
	token := command.Group(&cobra.Command{Use: "token", Short: "tokens of the HTTP API by TCP",
		Example: "  isthmus token make noc --role read"})
	var role string
	make := &cobra.Command{
		Use: "make NAME", Short: "make a token: itself, and the line for the configuration",
		Example: "  isthmus token make noc --role read >noc.token",
		Args:    cobra.ExactArgs(1),
		Long: "Make a token. It is printed on standard output and kept nowhere; the line for control.api,\n" +
			"with its hash, on standard error.",
		RunE: command.Failed(func(_ *cobra.Command, args []string) error {
			if !tokenName.MatchString(args[0]) {
				return command.Usage("%q is no name: up to 31 letters, digits, . _ -", args[0])
			}
			r, err := auth.ParseRole(role)
			if err != nil {
				return command.Usage("--role: %w", err)
			}
			secret, hash := auth.Make()
			fmt.Fprintf(e.Err, "control.api.tokens:\n  - {name: %s, role: %s, sha256: \"%s\"}\n", args[0],
				r, hex.EncodeToString(hash[:]))
			_, err = fmt.Fprintln(e.Out, secret)
			return err
		}),
	}
	make.Flags().StringVar(&role, "role", "read",
		"read, or operate: change things, trace, explain and capture, too")
	command.Values(make, "role", "", "read", "operate")
	token.AddCommand(make)
	return token
}
