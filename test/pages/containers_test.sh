#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: needs the image that smoke/image_test.sh makes, or IMAGE=FILE
# The page's containers lie in a storage of their own, and end with the page.
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
IMAGE=$(realpath -m "${IMAGE:-$here/../build/image-test.oci.tar}")
CONTAINERS_CONF=$(mktemp)
CONTAINERS_STORAGE_CONF=$(mktemp)
trap 'rm -f "$CONTAINERS_CONF" "$CONTAINERS_STORAGE_CONF"' EXIT
export IMAGE CONTAINERS_CONF CONTAINERS_STORAGE_CONF
cat >"$CONTAINERS_CONF" <<-TOML
	[engine]
	cgroup_manager = "cgroupfs"
	events_logger = "none"
	runtime = "runc"
	volume_path = "/mnt/volumes"
	[engine.runtimes]
	runc = ["$here/lib/runc.sh"]
TOML
printf '[storage]\ndriver = "vfs"\ngraphroot = "/mnt/storage"\nrunroot = "/mnt/runroot"\n' >"$CONTAINERS_STORAGE_CONF"
"$here/lib/page.py" docs/containers.md
