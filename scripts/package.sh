# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# ./dev package: .deb and .rpm in build/package. deploy/package/files says what is in them; build-package has the
# programs, with a data plane for each level of the processor.

# The version of the packages: PACKAGE_VERSION, else the project's.
package_version() {
	printf '%s\n' "${PACKAGE_VERSION:-$(sed -n "s/^\tversion: '\(.*\)',$/\1/p" meson.build)}"
}

# Builds in build-package what the packages install.
build_packaged() {
	local options version
	version=$(package_version)
	mapfile -t options < <(ISTHMUS_PORTABLE=1 release_options)
	configure build-package "${options[@]}" -Dvariants=true || return 1
	flock build-package/.dev-options ninja -C build-package -j "$(jobs_count)" packaged || return 1
	build_go build-package "$version" && build_manual build-package "$version"
}

# Puts one file in its place. The units name /usr/local/bin, as in an installation by hand; programs lose their symbols,
# manual pages are packed. Prints the path that it has.
# usage: stage_file MODE SOURCE TARGET
stage_file() {
	local mode=$1 source=$2 target=$3
	mkdir -p "$(dirname "$target")"
	case $target in
	*.service) sed 's|/usr/local/bin|/usr/bin|g' "$source" >"$target" ;;
	*/man/*.[15]) target+=.gz && gzip -9nc "$source" >"$target" ;;
	*) cp "$source" "$target" ;;
	esac
	[[ $mode != 755 ]] || strip "$target"
	chmod "$mode" "$target"
	printf '%s\n' "$target"
}

# Installs below ROOT all files of the packages, as dpkg would (but for owners), and writes into LIST a line for each:
# package, path, kind. Folders that a start makes are not there: sysusers.d, tmpfiles.d and the units name them.
# usage: stage_tree ROOT LIST
stage_tree() {
	local root=$1 list=$2 package mode kind to patterns source found path
	rm -rf "$root"
	: >"$list"
	while read -r package mode kind to patterns; do
		[[ -n $package && $package != \#* ]] || continue
		found=0
		for source in $patterns; do
			[[ -f $source ]] || continue
			found=1
			path=$to
			[[ $to != */ ]] || path=$to${source##*/}
			path=$(stage_file "$mode" "$source" "$root$path") || return 1
			printf '%s %s %s\n' "$package" "${path#"$root"}" "$kind" >>"$list"
		done
		((found)) || die "deploy/package/files: there is no $patterns"
	done <deploy/package/files
	find "$root" -exec touch -d "$(date_here) UTC" {} +
}

# Makes the packages of what is built. usage: make_packages FOLDER
make_packages() {
	local dir=$1
	mkdir -p "$dir"
	rm -f "$dir"/*.deb "$dir"/*.rpm
	stage_tree "$dir/tree" "$dir/list" || return 1
	SOURCE_DATE_EPOCH=$(date -u -d "$(date_here)" +%s) \
		scripts/packages.py "$dir/tree" "$dir/list" "$(package_version)" "$dir"
}

verb_package() {
	ensure_setup
	if [[ -z $(command -v rpmbuild) || -z $(command -v dpkg-shlibdeps) ]]; then
		is_root || die "rpm or dpkg-dev is missing: run 'sudo ./dev package' once"
		apt_install rpm dpkg-dev
	fi
	say "build the packages' programs"
	build_packaged
	make_packages build/package
	say "made:"
	ls build/package/*.deb build/package/*.rpm
}
