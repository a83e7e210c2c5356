// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/backup"
	"isthmus/controlplane/command"
)

const ownFile = "/etc/isthmus/isthmus.yaml"

// placeFlags are the command line's word on where a control plane is that does not run.
func (e *env) placeFlags(cmd *cobra.Command, at *backup.Place, config string) {
	cmd.Flags().StringVarP(&at.Config, "config", "c", ownFile, config)
	cmd.Flags().StringVar(&at.Folder, "state", "", "folder of what outlives the control plane (overrides the file)")
}

// place completes it as `isthmus run` does.
func (e *env) place(cmd *cobra.Command, at *backup.Place) error {
	if cmd.Flags().Changed("server") {
		return command.Usage("%s takes no --server: it works with the files of this machine", cmd.Name())
	}
	if cmd.Flags().Changed("socket") || e.Socket != command.DefaultSocket {
		at.Socket = e.Socket
	}
	at.Environ = os.Environ()
	return nil
}

func backupCommand(e *env) *cobra.Command {
	var at backup.Place
	var to string
	var force bool
	cmd := &cobra.Command{
		Use:   "backup {FILE | --to -}",
		Short: "put all that outlives the gateway into one file, while it runs or not",
		Args:  cobra.MaximumNArgs(1),
		Long: "Put all that outlives the gateway into one file, as it is at one moment. That is the\n" +
			"configuration with its tokens, what `config apply` brought, sessions and leases, accounting that\n" +
			"waits, and pipes of subscribers. It is also the certificate and key of the API, the audit log,\n" +
			"and the files that the configuration names: users, secrets, certificates.\n\n" +
			"All of it is always taken, with its secrets: the file has mode 0600 and belongs in a safe place.\n" +
			"Where no control plane answers, -c, --state and the environment say where the files are.",
		Example: "  isthmus backup gateway.backup\n  isthmus backup --to - | ssh safe 'cat >gateway.backup'",
	}
	e.placeFlags(cmd, &at, "configuration file, when no control plane answers")
	cmd.Flags().StringVar(&to, "to", "", "- for standard output, or a file")
	cmd.Flags().BoolVar(&force, "force", false, "replace a file that is there")
	cmd.RunE = command.Failed(func(cmd *cobra.Command, args []string) error {
		if (len(args) > 0) == (to != "") {
			return command.Usage("one file, please: FILE, or --to -")
		}
		if len(args) > 0 {
			to = args[0]
		}
		if err := e.place(cmd, &at); err != nil {
			return err
		}
		kept, err := e.kept(cmd, at)
		if err != nil {
			return err
		}
		b, err := backup.Take(kept, time.Now())
		if err != nil {
			return err
		}
		if to == "-" {
			err = b.Write(e.Out)
		} else {
			err = writeBackup(to, force, b)
		}
		if err == nil {
			fmt.Fprintf(e.Err, "%s: %d files of %s. Secrets are in it: keep it safe\n", to,
				len(b.Manifest.Members), b.Manifest.Node)
		}
		return err
	})
	return cmd
}

// kept asks the control plane, which knows its environment; where none answers, it is read from the files.
func (e *env) kept(cmd *cobra.Command, at backup.Place) (kept v1.Kept, err error) {
	data, err := e.Call(cmd.Context(), "GET", "/v1/kept", nil, nil)
	var exit *command.Exit
	if errors.As(err, &exit) && exit.Code == command.ExitUnreachable {
		return backup.Kept(command.Version, at)
	}
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	return kept, err
}

// writeBackup puts a whole file in its place, or leaves what was there.
func writeBackup(path string, force bool, b *backup.Backup) error {
	if _, err := os.Lstat(path); err == nil && !force {
		return fmt.Errorf("%s: %w; --force replaces it", path, fs.ErrExist)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err = errors.Join(b.Write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	flags := uint(unix.RENAME_NOREPLACE)
	if force {
		flags = 0
	}
	if err = unix.Renameat2(unix.AT_FDCWD, f.Name(), unix.AT_FDCWD, path, flags); err == unix.EINVAL {
		err = os.Rename(f.Name(), path) // a file system without the flag
	}
	return err
}

func restoreCommand(e *env) *cobra.Command {
	var at backup.Place
	var opt backup.Options
	var without, dry bool
	cmd := &cobra.Command{
		Use:   "restore {FILE | -}",
		Short: "put a backup in its place, on this or another machine, before the gateway starts",
		Args:  cobra.ExactArgs(1),
		Long: "Put a backup in its place before the gateway starts, whole or not at all. A damaged backup, or one\n" +
			"of a newer format, is refused. The configuration becomes the file of -c; it says where all\n" +
			"else goes. Modes stay, and so do owners, where this machine has their names.\n\n" +
			"Subscribers who signed in come back with their leases. Sessions of CP functions do not, since\n" +
			"these have changed them meanwhile: the Recovery Time Stamp is a later one, and they set up\n" +
			"their sessions again (TS 23.527). Records of accounting that wait are sent, perhaps for the\n" +
			"second time, with the same Acct-Session-Id.\n\n" +
			"What another machine may not have, such as PCI addresses and CPUs, is listed.",
		Example: "  isthmus restore --dry-run gateway.backup\n  isthmus restore gateway.backup",
	}
	e.placeFlags(cmd, &at, "where the configuration file goes")
	f := cmd.Flags()
	f.BoolVar(&opt.Force, "force", false, "put files that are there aside, as FILE"+backup.BeforeSuffix)
	f.BoolVar(&dry, "dry-run", false, "check the backup and say where it goes; change nothing")
	f.BoolVar(&without, "without-accounting", false, "leave records of accounting that wait: servers have them")
	cmd.RunE = command.Failed(func(cmd *cobra.Command, args []string) error {
		if err := e.place(cmd, &at); err != nil {
			return err
		}
		b, err := readBackup(cmd.InOrStdin(), args[0])
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		opt.Accounting = !without
		r, err := backup.Plan(b, at, opt)
		if err == nil && !dry {
			err = r.Apply()
		}
		if err != nil {
			return fmt.Errorf("nothing is restored: %w", err)
		}
		return e.tellRestore(r, dry)
	})
	return cmd
}

func readBackup(in io.Reader, name string) (*backup.Backup, error) {
	if name == "-" {
		return backup.Read(in)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err.(*fs.PathError).Err
	}
	defer f.Close()
	return backup.Read(f)
}

func (e *env) tellRestore(r *backup.Restore, dry bool) error {
	var text bytes.Buffer
	m := &r.Manifest
	verb := map[bool]string{true: "good", false: "restored"}[dry]
	fmt.Fprintf(&text, "%s: %s at %s, by isthmus %s\n", verb, m.Node, m.Taken.Format(time.RFC3339), m.Version)
	for i := range m.Members {
		to := r.Path(m.Members[i].Role)
		if to == "" {
			to = "left"
		}
		fmt.Fprintf(&text, "%-40s %s\n", m.Members[i].Role, to)
	}
	if !dry && !m.Recovery.IsZero() {
		fmt.Fprintf(&text, "%d subscribers, %d records of accounting; %d sessions of CP functions are left, "+
			"the recovery time stamp is %s, not %s\n", r.Sessions.Subscribers, r.Accounts, r.Sessions.Left,
			r.Sessions.Recovery.UTC().Format(time.RFC3339), m.Recovery.UTC().Format(time.RFC3339))
	}
	if dry && r.Refusal != nil {
		fmt.Fprintln(&text, "now refused:", r.Refusal)
	}
	for _, line := range r.Bound() {
		fmt.Fprintln(&text, "bound to a machine:", line)
	}
	for _, line := range r.Notes {
		fmt.Fprintln(&text, "note:", line)
	}
	for _, path := range r.Kept {
		fmt.Fprintln(&text, "put aside:", path)
	}
	_, err := e.Out.Write(text.Bytes())
	return err
}
