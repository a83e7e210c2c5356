# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# ./dev build, and the other build folders: build/ (release), build-asan/ (sanitizers), build-fuzz/ (libFuzzer).

cpu_option() {
	if [[ ${ISTHMUS_PORTABLE:-0} == 1 ]]; then
		printf 'portable\n'
	else
		printf 'native\n'
	fi
}

# Configures DIR when it is not yet, or when it was with other options.
# usage: configure DIR OPTION...
configure() {
	local dir=$1 stamp options lock
	shift
	stamp=$dir/.dev-options
	options="${CC:-gcc} $*"
	if [[ -e $dir && ! -w $dir ]]; then
		die "$dir belongs to another user (was it made by root?): remove it, or run this as that user"
	fi
	mkdir -p "$dir"
	exec {lock}>"$dir/.lock" # two checks of lint may ask for it at once
	flock "$lock"
	if [[ ! -f $dir/build.ninja ]]; then
		quietly "$dir/configure.log" meson setup --werror "$dir" "$@" || return 1
	elif [[ $(cat "$stamp" 2>/dev/null) != "$options" ]]; then
		quietly "$dir-configure.log" meson setup --werror --wipe "$dir" "$@" || return 1
		rm -f "$dir-configure.log"
	fi
	printf '%s\n' "$options" >"$stamp"
	exec {lock}>&-
}

# Lets one ./dev at a time build in DIR.
# usage: build_dir DIR OPTION...
build_dir() {
	local dir=$1
	configure "$@" || return 1
	flock "$dir/.dev-options" ninja -C "$dir" -j "$(jobs_count)"
}

# A precompiled header more than halves the time of a build; ccache, where there is one, does better, but not with it.
pch_option() {
	if command -v ccache >/dev/null; then
		printf -- '-Dpch=false\n'
	else
		printf -- '-Dpch=true\n'
	fi
}

# gold links a program of the sanitizers, of which there are 160, in a quarter of the time.
linker_option() {
	printf -- '-Dc_link_args=%s\n' "$(! command -v ld.gold >/dev/null || printf -- -fuse-ld=gold)"
}

release_options() {
	printf '%s\n' --buildtype=release "-Dcpu=$(cpu_option)" "$(pch_option)"
}

# Targets of the release build. usage: build_release TARGET...
build_release() {
	local options
	mapfile -t options < <(release_options)
	configure build "${options[@]}" && flock build/.dev-options ninja -C build -j "$(jobs_count)" "$@"
}

# The same without a word. clang-tidy needs build.ninja: build/compile_commands.json of this meson.build.
build_targets() {
	mkdir -p build
	quietly "build/$BASHPID.log" build_release "$@" && rm "build/$BASHPID.log"
}

# In the test builds, memory read before it was written never has a lucky value such as 0.
DIRTY_STACK=-ftrivial-auto-var-init=pattern

build_asan() {
	# -O1 -g1 compiles in two thirds of the time of -O2 -g, and stack traces still have lines. gcc's warnings about
	# values need -O2, so the release build has them. With -fPIC throughout most objects become one shared library,
	# and the precompiled header serves one kind of code.
	build_dir build-asan --buildtype=debug -Doptimization=1 \
		"-Dc_args=['-g1', '-fPIC', '-Wno-format-truncation', '-Wno-maybe-uninitialized', '$DIRTY_STACK']" \
		"-Dcpu=$(cpu_option)" "$(pch_option)" \
		-Db_sanitize=address,undefined -Db_staticpic=true -Db_pie=false "$(linker_option)"
}

# fuzzer-no-link: all of the code reports its coverage to libFuzzer, not only the target's own file.
# b_lundef: with clang's sanitizers the runtime's symbols are undefined until the executable is linked.
build_fuzz() {
	CC=clang CXX=clang++ build_dir build-fuzz --buildtype=debugoptimized "-Dcpu=$(cpu_option)" -Dfuzz=true \
		"-Dc_args=['-fsanitize=fuzzer-no-link', '$DIRTY_STACK']" -Db_sanitize=address,undefined -Db_lundef=false
}

version_here() {
	git_here describe --always --dirty 2>/dev/null || printf 'unknown\n'
}

# The Go programs. usage: build_go [FOLDER VERSION]
# shellcheck disable=SC2120 # scripts/package.sh gives both
build_go() {
	go build -ldflags "-bindnow -X isthmus/controlplane/command.Version=${2:-$(version_here)}" -o "${1:-build}/" \
		./controlplane/cmd/isthmus ./lab/cmd/isthmus-lab ./lab/cmd/isthmus-traffic
}

# The date of the last commit: builds of it are the same at any time.
date_here() {
	git_here log -1 --format=%cs 2>/dev/null || printf '2026-01-01\n'
}

# Manual pages and completion, as they lie below /usr/share: FOLDER/share. usage: build_manual [FOLDER VERSION]
# shellcheck disable=SC2120 # scripts/package.sh gives both
build_manual() {
	local dir=${1:-build}
	rm -rf "$dir/share"
	go run ./lab/cmd/isthmus-manual "$dir/share" "${2:-$(version_here)}" "$(date_here)"
}

# meson puts a program into the folder of its meson.build; people find it in build/.
link_program() {
	[[ -e build/$1 || ! -e build/$2/$1 ]] || ln -sf "$2/$1" "build/$1"
}

# Fails when the Go types are not those of the C header, or when a released message changed.
check_api() {
	api/check.sh
}

build_all() {
	local program
	say "build"
	check_api
	build_release programs
	link_program isthmus-dp dataplane
	link_program isthmus-traffic-engine traffic
	# shellcheck disable=SC2119 # as they are
	build_go
	# shellcheck disable=SC2119
	build_manual
	for program in isthmus isthmus-lab isthmus-dp isthmus-traffic isthmus-traffic-engine; do
		[[ -x build/$program ]] || die "the build ended without build/$program"
	done
}

verb_build() {
	ensure_setup
	build_all
	say "built build/isthmus, isthmus-lab, isthmus-dp and isthmus-traffic"
}
