# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# ./dev image: the OCI image in build/package, of what the packages install (scripts/package.sh).

# usage: image_file: the path of the image
image_file() {
	printf 'build/package/isthmus-%s-%s.oci.tar\n' "$(package_version)" "$(dpkg --print-architecture)"
}

# Makes the image of build-package as FILE. usage: make_image FILE
make_image() (
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	mkdir -p "$(dirname "$1")"
	stage_tree "$dir/tree" "$dir/list" || exit
	SOURCE_DATE_EPOCH=$(date -u -d "$(date_here)" +%s)
	ISTHMUS_REVISION=$(git_here rev-parse HEAD 2>/dev/null || true)
	export SOURCE_DATE_EPOCH ISTHMUS_REVISION
	scripts/image.py "$dir/tree" "$1"
)

verb_image() {
	ensure_setup
	build_packaged
	make_image "$(image_file)"
}
