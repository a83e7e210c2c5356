#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gets and builds programs that the gateway is compared with, or tested against. Does nothing when they are there
# already. Nothing of that code is kept in git.
# usage: scripts/peers.sh [--force] [dpdk|smf]      (default: dpdk)
#
# dpdk: the sources of the installed DPDK's examples from Debian, verified by apt, into .tools/peers/bin. A program NAME
# that could not be built leaves NAME.failed with the reason; bin/VERSION has the versions built. The system's package
# sources and lists are only read: apt works in folders of its own. SMF: control planes that speak PFCP (test/peers),
# from the Go proxy, verified by test/peers/go.sum, into .tools/peers/smf.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh
ROOT=$PWD
# shellcheck source=scripts/setup.sh
. scripts/setup.sh

PEERS=(l3fwd l3fwd-graph qos_sched ip_pipeline)
FLAGS=(-O3 -march=native -w -DALLOW_EXPERIMENTAL_API)
dir=.tools/peers

# ---- sources ---------------------------------------------------------------------------------------------------------

# This machine's package sources with "deb-src" in place of "deb", in both formats, in folder $1.
source_lists() {
	local file
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[[ -f $file ]] || continue
		sed -nE 's/^[[:blank:]]*deb([[:blank:]].*debian.*)/deb-src\1/p' "$file" \
			>"$1/$(basename "$file" .list).list"
	done
	for file in /etc/apt/sources.list.d/*.sources; do
		grep -qs debian "$file" || continue
		sed -E 's/^Types:.*/Types: deb-src/' "$file" >"$1/$(basename "$file")"
	done
	find "$1" -empty -type f -delete
}

# apt-get with sources, lists and cache of its own in folder $1.
own_apt() {
	local apt=$1
	shift
	apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$apt/parts" \
		-o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User= \
		-o Acquire::Retries=3 -o Acquire::Languages=none "$@"
}

# Downloads the source package $1 into folder $2. apt compares its hashes with those of the signed index.
download() {
	local version=$1 to=$2 apt
	apt=$(realpath "$to")/apt
	mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial"
	source_lists "$apt/parts"
	own_apt "$apt" update || return 1
	(cd "$to" && own_apt "$apt" source --download-only "dpdk=$version")
}

# Unpacks the examples, and their shared files, from the archive of folder $1 to $1/examples. Debian's patches touch
# none of them. Python knows the format without further packages.
unpack() {
	python3 - "$1" "${PEERS[@]}" <<-'PY'
		import glob, os, sys, tarfile
		folder, wanted = sys.argv[1], set(sys.argv[2:]) | {"common"}
		[archive] = glob.glob(os.path.join(folder, "dpdk_*.orig.tar.*"))
		with tarfile.open(archive) as tar:
		    for member in tar:
		        parts = member.name.split("/")
		        example = len(parts) > 3 and parts[1] == "examples" and parts[2] in wanted
		        if member.isfile() and example and ".." not in parts:
		            to = os.path.join(folder, *parts[1:])
		            os.makedirs(os.path.dirname(to), exist_ok=True)
		            with open(to, "wb") as file:
		                file.write(tar.extractfile(member).read())
	PY
}

# ---- what must be changed for the link -------------------------------------------------------------------------------

# Changes a file by a sed script; fails when that changes nothing, as with another version of the source.
# usage: change FILE SCRIPT
change() {
	local before
	before=$(sha256sum <"$1")
	sed -i -E "$2" "$1"
	[[ $(sha256sum <"$1") != "$before" ]] || {
		printf '%s is not what this script knows: nothing to change by %s\n' "$1" "$2" >&2
		return 1
	}
}

# l3fwd asks every card to check IP checksums, which net_memif has not (DPDK 23.03 has --relax-rx-offload for this). Its
# forwarding does not look at the result.
change_l3fwd() {
	change main.c 's/\.offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM,//'
}

# The main thread of l3fwd-graph spins between two prints of its statistics. It does not forward, and where CPUs are few
# it would take the tester's.
change_l3fwd-graph() {
	change main.c 's/rte_delay_ms\(1E3\)/rte_delay_us_sleep(1E6)/'
}

# ip_pipeline asks for frames of 9000 bytes, and net_memif takes 1518. Its main thread spins over its console.
change_ip_pipeline() {
	change link.c 's/\.mtu = 9000 - \(RTE_ETHER_HDR_LEN \+ RTE_ETHER_CRC_LEN\),.*/.mtu = RTE_ETHER_MTU,/' &&
		change main.c 's/^(\t+)kni_handle_request\(\);/&\n\1usleep(10000);/' &&
		change main.c 's/^#include <getopt.h>/&\n#include <unistd.h>/'
}

# qos_sched wants a core for reception and another for scheduling. To stand beside programs of one core its two loops
# become single passes, which one core calls in turn.
change_qos_sched() {
	change args.c 's/if \(pconf->rx_core == pconf->wt_core\)/if (0)/' &&
		change app_thread.c '/if \(confs\[conf_idx\] == NULL\)/,+1d' &&
		change main.c 's/^(\t+)app_rx_thread\(rx_confs\);/\1for (;;)\n\1\tapp_rx_thread(rx_confs);/' &&
		change main.c \
			's/(else if \(mode) == \((APP_TX_MODE) \| (APP_WT_MODE)\)\)/\1 \& \2 \&\& mode \& \3)/' &&
		change main.c \
			's/^(\t+)app_mixed_thread\(wt_confs\);/\1for (;;) {\n\1\tif (mode \& APP_RX_MODE)\n@&\n\1}/' &&
		change main.c 's/^@(\t+)(.*)/\1\t\tapp_rx_thread(rx_confs);\n\1\t\2/'
}

# ---- building --------------------------------------------------------------------------------------------------------

# Builds example $1 of folder $2/examples into folder $3.
build_one() {
	local name=$1 to cflags libs file sources=()
	to=$(realpath "$3")/$1
	read -ra cflags <<<"$(pkg-config --cflags libdpdk)"
	read -ra libs <<<"$(pkg-config --libs libdpdk)"
	cd "$2/examples/$name" || return 1
	"change_$name" || return 1
	for file in *.c; do
		# Some are parts of others.
		grep -qF "#include \"$file\"" ./*.c || sources+=("$file")
	done
	# The last -march counts.
	"${CC:-gcc}" "${cflags[@]}" "${FLAGS[@]}" -I../common "${sources[@]}" -o "$to" "${libs[@]}"
}

# The sources of bin/: the installed DPDK, this script, the compiler.
wanted_stamp() {
	printf 'dpdk %s\nflags %s\ncompiler %s\nscript %s\n' "$1" "${FLAGS[*]}" "$("${CC:-gcc}" --version | head -1)" \
		"$(sha256sum <scripts/peers.sh | cut -d ' ' -f 1)"
}

build_all_peers() {
	local version=$1 work=$2 name
	say "getting the sources of DPDK $version"
	quietly "$dir/apt.log" download "$version" "$work" ||
		die "apt could not get the source package dpdk $version (whole log: $dir/apt.log)"
	unpack "$work"
	mkdir "$work/bin"
	for name in "${PEERS[@]}"; do
		say "building $name"
		(build_one "$name" "$work" "$work/bin") >"$work/bin/$name.log" 2>&1 && continue
		mv "$work/bin/$name.log" "$work/bin/$name.failed"
		warn "$name could not be built: $(tail -n 1 "$work/bin/$name.failed")"
	done
	wanted_stamp "$version" >"$work/bin/VERSION"
	rm -rf "${dir:?}/bin" "${dir:?}/examples"
	mv "$work/examples" "$work/bin" "$dir/"
}

build_dpdk() {
	local version work
	version=$(dpkg-query -W -f '${source:Version}' libdpdk-dev 2>/dev/null) ||
		die "the package libdpdk-dev is not installed: ./dev setup"
	command -v "${CC:-gcc}" pkg-config python3 apt-get >/dev/null ||
		die "needs gcc, pkg-config, python3 and apt-get"
	if [[ $1 != --force && $(cat "$dir/bin/VERSION" 2>/dev/null) == "$(wanted_stamp "$version")" ]]; then
		return 0
	fi
	work=$(mktemp -d "$dir/work.XXXXXX")
	# shellcheck disable=SC2064 # this folder, now
	trap "rm -rf '$work'" EXIT
	build_all_peers "$version" "$work"
	say "built $(find "$dir/bin" -type f -perm -1 -printf '%f ')in $dir/bin"
}

# ---- control planes --------------------------------------------------------------------------------------------------

SMFS=(github.com/omec-project/pfcpsim/cmd/pfcpsim github.com/omec-project/pfcpsim/cmd/pfcpctl ./free5gc)

# pfcpsim 1.3.1 reads the next datagram into the octets of an unread answer. If a Session Report follows within a
# millisecond, it takes the report's octets for the answer's cause. The change gives each datagram a buffer. Puts
# test/peers and the changed pfcpsim into $1/from.
change_pfcpsim() {
	local module=github.com/omec-project/pfcpsim from file=$1/from/pfcpsim/pkg/pfcpsim/pfcpsim.go
	from=$(cd test/peers && go mod download $module && go list -m -f '{{.Dir}}' $module) || return 1
	mkdir "$1/from" && cp -r test/peers "$from" "$1/from" && mv "$1/from/${from##*/}" "$1/from/pfcpsim" &&
		chmod -R u+w "$1/from" &&
		change "$file" 's/^\t+n, _, err := c\.conn\.ReadFrom\(buf\)/buf := make([]byte, 3000)\n&/' &&
		change "$file" '/^\tbuf := make\(\[\]byte, 3000\)$/d' &&
		(cd "$1/from/peers" && go mod edit -replace $module=../pfcpsim)
}

build_smf() {
	local stamp work
	use_go || die "there is no Go >= 1.$GO_MINOR: ./dev setup"
	stamp=$(go version && find test/peers scripts/peers.sh -type f -print0 | sort -z | xargs -0 sha256sum)
	if [[ $1 != --force && $(cat "$dir/smf/VERSION" 2>/dev/null) == "$stamp" ]]; then
		return 0
	fi
	work=$(mktemp -d "$dir/work.XXXXXX")
	# shellcheck disable=SC2064 # this folder, now
	trap "rm -rf '$work'" EXIT
	say "getting and building ${SMFS[*]##*/}"
	quietly "$ROOT/$dir/go.log" change_pfcpsim "$work" ||
		die "pfcpsim could not be got or changed (whole log: $dir/go.log)"
	(cd "$work/from/peers" && quietly "$ROOT/$dir/go.log" go build -o ../../ "${SMFS[@]}") ||
		die "go could not get or build them (whole log: $dir/go.log)"
	rm -rf "$work/from"
	printf '%s\n' "$stamp" >"$work/VERSION"
	rm -rf "${dir:?}/smf"
	mv "$work" "$dir/smf"
	chmod 755 "$dir/smf"
	say "built $(find "$dir/smf" -type f -perm -1 -printf '%f ')in $dir/smf"
}

main() {
	local force=''
	if [[ ${1:-} == --force ]]; then
		force=--force
		shift
	fi
	mkdir -p "$dir"
	exec 9>"$dir/.lock"
	flock 9 # one at a time; a second one finds everything there
	case ${1:-dpdk} in
	dpdk | smf) "build_${1:-dpdk}" "$force" ;;
	*) die "usage: scripts/peers.sh [--force] [dpdk|smf]" ;;
	esac
}

main "$@"
