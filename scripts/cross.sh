# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# ./dev cross arm64: the programs and their tests for arm64, made here by Debian's cross compiler against Debian's arm64
# packages, and run under qemu-user. Those packages are not installed, only unpacked, into CROSS_DIR (default
# /var/tmp/isthmus-arm64-SUITE), where the next run finds them. Builds are in build-arm64.

CROSS_TOOLS=(gcc-aarch64-linux-gnu qemu-user-static)
CROSS_PACKAGES=(libdpdk-dev libpcap-dev libcmocka-dev libc6-dev)
CROSS_BUILD=build-arm64

# C tests that cannot run under qemu-user, and why.
declare -A CROSS_APART=()

# Packages with arithmetic, or with layouts that the C programs share.
CROSS_GO=(./api ./controlplane/{bucket,checksum,dhcp,dp,intent,lease,measure,mmsg,pfcp,ppp,radius,rules,sdf,view}
	./lab/{figure,frames} ./traffic/...)

cross_suite() (
	# shellcheck source=/dev/null
	. /etc/os-release
	printf '%s\n' "${VERSION_CODENAME:-sid}"
)

cross_dir() {
	printf '%s\n' "${CROSS_DIR:-/var/tmp/isthmus-arm64-$(cross_suite)}"
}

# Debian 13's has another name, and is as static.
cross_qemu() {
	command -v qemu-aarch64-static || command -v qemu-aarch64
}

# Prints what runs a program: on a processor that has no more than the build asks for (meson_options.txt).
cross_emulator() {
	printf '%s -cpu cortex-a72 -L %s/root\n' "$(cross_qemu)" "$(cross_dir)"
}

cross_has_tools() {
	command -v aarch64-linux-gnu-gcc >/dev/null && cross_qemu >/dev/null
}

# Prints why nothing can be built for arm64 here. Succeeds when there is a reason.
cross_obstacle() {
	if ! command -v apt-get >/dev/null; then
		printf 'it needs apt, and Debian packages for arm64\n'
	elif ! cross_has_tools && ! is_root; then
		printf 'it needs the Debian packages %s, which root may install\n' "${CROSS_TOOLS[*]}"
	else
		return 1
	fi
}

# apt for arm64, for which nothing is installed: dependencies are asked for with what needs them.
cross_apt() {
	apt_here -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Status="$PWD/status" \
		-o APT::Install-Recommends=false -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$@"
}

# Unpacks the packages of cache/archives into root, as a merged-/usr system. Links are to be followed from outside.
cross_unpack() {
	local deb link
	mkdir -p root/usr/lib
	ln -s usr/lib root/lib
	for deb in cache/archives/*.deb; do
		dpkg --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C root \
			--exclude='./usr/share/doc' --exclude='./usr/share/man' --exclude='./usr/share/locale' ||
			return 1
	done
	find root -type l -lname '/*' | while IFS= read -r link; do
		ln -sfn "$1/root$(readlink "$link")" "$link"
	done
}

cross_root() (
	dir=$(cross_dir)
	[[ ! -d $dir/root ]] || return 0
	say "getting Debian's arm64 packages into $dir"
	mkdir -p "$dir"
	tmp=$(mktemp -d "$dir/tmp.XXXXXX")
	mkdir -p "$tmp"/{parts,lists/partial,cache/archives/partial}
	: >"$tmp/status"
	printf '%s\n' 'Types: deb' 'URIs: http://deb.debian.org/debian' "Suites: $(cross_suite)" 'Components: main' \
		"Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg" >"$tmp/parts/debian.sources"
	cd "$tmp" || exit
	if ! (cross_apt update && cross_apt install -y --download-only "${CROSS_PACKAGES[@]}" &&
		cross_unpack "$dir") >"$dir/log" 2>&1; then
		tail -n 20 "$dir/log" >&2
		die "no arm64 packages (whole log: $dir/log)"
	fi
	mv root "$dir/root"
	cd / && rm -rf "$tmp"
)

# meson's description of the machine.
cross_file() {
	local root emulator c="'aarch64-linux-gnu-gcc'" lib=usr/lib/aarch64-linux-gnu
	root=$(cross_dir)/root
	emulator=$(cross_emulator)
	! command -v ccache >/dev/null || c="'ccache', $c"
	cat <<-END
		[binaries]
		c = [$c]
		ar = 'aarch64-linux-gnu-ar'
		strip = 'aarch64-linux-gnu-strip'
		pkgconfig = 'pkg-config'
		exe_wrapper = ['${emulator// /\', \'}']
		[built-in options]
		c_args = ['--sysroot=$root']
		c_link_args = ['--sysroot=$root']
		[properties]
		needs_exe_wrapper = true
		sys_root = '$root'
		pkg_config_libdir = ['$root/$lib/pkgconfig', '$root/usr/share/pkgconfig']
		[host_machine]
		system = 'linux'
		cpu_family = 'aarch64'
		cpu = 'aarch64'
		endian = 'little'
	END
}

# A script in the place of a program, which others start by its name. usage: cross_wrap PROGRAM SCRIPT
cross_wrap() {
	mkdir -p "$(dirname "$2")"
	printf '#!/bin/sh\nexec %s %s "$@"\n' "$(cross_emulator)" "$PWD/$1" >"$2"
	chmod +x "$2"
}

cross_build() {
	local dir program
	cross_has_tools || install_packages "${CROSS_TOOLS[@]}"
	cross_root
	dir=$(cross_dir)
	say "build for arm64"
	cross_file >"$dir/cross.new"
	cmp -s "$dir/cross.new" "$dir/cross.ini" || cp "$dir/cross.new" "$dir/cross.ini"
	build_dir "$CROSS_BUILD" --cross-file "$dir/cross.ini" --buildtype=release -Dcpu=portable -Dpch=false
	GOARCH=arm64 CGO_ENABLED=0 build_go "$CROSS_BUILD/go"
	# isthmus looks for isthmus-dp beside itself.
	for program in run/isthmus-dp go/isthmus-dp; do
		cross_wrap "$CROSS_BUILD/dataplane/isthmus-dp" "$CROSS_BUILD/$program"
	done
	cross_wrap "$CROSS_BUILD/go/isthmus" "$CROSS_BUILD/run/isthmus"
	cross_wrap "$CROSS_BUILD/dataplane/gtpu-peer-test" "$CROSS_BUILD/run/dataplane/gtpu-peer-test"
}

# ---- tests ----------------------------------------------------------------------------------------------------------

CROSS_SUM=(0 0 0) # passed, failed, skipped

cross_add() {
	local i
	for i in 0 1 2; do
		CROSS_SUM[i]=$((CROSS_SUM[i] + ${1:-0}))
		shift || true
	done
}

# All C tests, and the corpora of the fuzz targets. Emulated code is ten times slower: fewer random packets.
cross_unit() {
	local tests
	mapfile -t tests < <(meson introspect --tests "$CROSS_BUILD" | jq -r '.[].name' | while IFS= read -r name; do
		[[ -n ${CROSS_APART[$name]:-} ]] || ! wanted "$name" "$@" || printf '%s\n' "$name"
	done)
	((${#tests[@]})) || return 0
	HQOS_ROUNDS=5 FLOW_FRAMES_STEP=48 FLOW_MODEL_ROUNDS=2000 flock "$CROSS_BUILD/.dev-options" \
		meson test -C "$CROSS_BUILD" --no-rebuild --print-errorlogs --num-processes 2 --timeout-multiplier 20 \
		"${tests[@]}" || true
	# shellcheck disable=SC2046 # words are wanted
	cross_add $(unit_counts "$CROSS_BUILD")
}

cross_golden() {
	local script
	for script in test/golden/*_test.sh; do
		wanted "$script" "$@" || continue
		say "$script"
		if BUILD="$PWD/$CROSS_BUILD/run" "$script"; then
			cross_add 1
		else
			cross_add 0 1
		fi
	done
}

cross_go() {
	local packages json=$CROSS_BUILD/go.json
	mapfile -t packages < <(go list "${CROSS_GO[@]}" | while IFS= read -r name; do
		! wanted "$name" "$@" || printf '%s\n' "$name"
	done)
	((${#packages[@]})) || return 0
	GOARCH=arm64 CGO_ENABLED=0 go test -vet=off -p 2 -timeout 3000s -json \
		-exec "$PWD/scripts/own_net.sh $(cross_emulator)" "${packages[@]}" >"$json" || true
	jq -rj 'select(.Action == "output" or .Action == "build-output") | .Output' "$json" |
		grep -vE '^(=== (RUN|PAUSE|CONT)| *--- PASS|PASS)' || true
	# shellcheck disable=SC2046
	cross_add $(go_counts "$json")
}

# usage: cross_test [WORD...]
cross_test() {
	local name
	cross_unit "$@"
	cross_golden "$@"
	cross_go "$@"
	for name in "${!CROSS_APART[@]}"; do
		! wanted "$name" "$@" || warn "set apart: $name: ${CROSS_APART[$name]}"
	done
	say "arm64 under qemu-user: ${CROSS_SUM[0]} passed, ${CROSS_SUM[1]} failed, ${CROSS_SUM[2]} skipped"
	((CROSS_SUM[0] > 0 && CROSS_SUM[1] == 0))
}

# usage: verb_cross arm64 [test [WORD...]]
verb_cross() {
	local why
	[[ ${1:-} == arm64 && ${2:-test} == test ]] ||
		die "usage: ./dev cross arm64 [test [WORD...]] (arm64 is the only architecture that it knows)"
	! why=$(cross_obstacle) || die "no build for arm64: $why"
	ensure_setup
	cross_build
	if (($# > 1)); then
		cross_test "${@:3}"
	fi
}
