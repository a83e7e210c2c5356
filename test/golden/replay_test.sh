#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Captures in, captures and counters out, through `isthmus replay`, without privileges and without huge pages. Each case
# is a folder with in-PORT.pcap (made by gen.py), expected-PORT.pcap, expected-counters.json and, where needed,
# config.yaml. Then check.py compares, and has tshark read the result.
# Usage: replay_test.sh [-r] [CASE...] -r: make the inputs and the expectations again; look at the difference!
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$(cd ../.. && pwd)
bin=$(realpath "${BUILD:-$root/build}")
python=/usr/bin/python3
regenerate=0
if [[ ${1:-} == -r ]]; then
	regenerate=1
	shift
fi
DIR=$(mktemp -d)
export DIR PYTHONPATH=$root/test/lib PYTHONDONTWRITEBYTECODE=1
trap 'rm -rf "$DIR"' EXIT

# Where an unprivileged user can read them, whatever folder the sources are in.
chmod 755 "$DIR"
cp "$bin/isthmus" "$bin/isthmus-dp" "$DIR"
as_nobody=()
if ((EUID == 0)); then
	as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all
		--no-new-privs)
fi

# usage: replay CASE FOLDER
replay() {
	local config=config.yaml
	[[ ! -f $1/config.yaml ]] || config=$1/config.yaml
	mkdir "$2"
	cp "$config" "$2/config.yaml"
	cp "$1"/in-*.pcap "$2"
	chmod -R a+rX "$2"
	chmod 777 "$2"
	(cd "$2" && env -i PATH="$PATH" HOME="$2" TMPDIR="$2" "${as_nobody[@]}" "$DIR/isthmus" replay -c config.yaml \
		--in access=in-access.pcap --in core=in-core.pcap --out access=access.pcap --out core=core.pcap \
		--counters counters.json)
}

bad=0
for folder in */; do
	name=${folder%/}
	[[ $# -eq 0 || " $* " == *" $name "* ]] || continue
	((!regenerate)) || "$python" gen.py "$name"
	replay "$name" "$DIR/$name"
	if ((regenerate)); then
		cp "$DIR/$name/access.pcap" "$name/expected-access.pcap"
		cp "$DIR/$name/core.pcap" "$name/expected-core.pcap"
		"$python" -m json.tool "$DIR/$name/counters.json" "$name/expected-counters.json"
	fi
	"$python" check.py "$name" "$DIR/$name" "$name" || bad=1
	# The same again: the same files.
	replay "$name" "$DIR/$name-again"
	for file in access.pcap core.pcap counters.json; do
		cmp "$DIR/$name/$file" "$DIR/$name-again/$file" || bad=1
	done
	if ((bad)) && [[ -n ${ARTIFACTS:-} ]]; then
		mkdir -p "$ARTIFACTS"
		cp -r "$DIR/$name" "$ARTIFACTS"
	fi
done

# What is left out is said in one line, and only --skip makes that a success. usage: left_out NAME RC LINE [ARGUMENT...]
left_out() {
	local name=$1 want=$2 line=$3 rc=0
	shift 3
	"$bin/isthmus" replay -c config.yaml --in "access=$DIR/$name.pcap" --out "access=$DIR/out.pcap" \
		--counters "$DIR/left-out.json" "$@" 2>"$DIR/stderr" >"$DIR/stdout" || rc=$?
	if ((rc != want)) || ! grep -q "$line" "$DIR/stderr" || (($(wc -l <"$DIR/stderr") != 1)); then
		echo "$name $*: exit $rc, not $want; no line \"$line\" alone in:"
		cat "$DIR/stderr"
		bad=1
	fi
}
"$python" - <<'EOF'
import os
import struct

def capture(name, *frames, behind=b""):
    with open(f"{os.environ['DIR']}/{name}.pcap", "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1))
        for n, (caught, length) in enumerate(frames):
            f.write(struct.pack("<IIII", 1, n, caught, length) + bytes(caught))
        f.write(behind)

good = (64, 64)
capture("cut", good, (60, 64), (60, 1500), good)
capture("long", good, (16385, 16385), (0, 0), good)
capture("damaged", good, good, behind=b"\1\0\0\0\0\0")
capture("good", good)
EOF
for skip in "" --skip; do
	rc=$((${#skip} == 0))
	left_out cut "$rc" "left out: 2 frames that were cut when they were captured" ${skip:+"$skip"}
	left_out long "$rc" "left out: 2 frames of no or more than 16384 bytes" ${skip:+"$skip"}
	left_out damaged "$rc" "damaged.pcap: .* what follows is left out" ${skip:+"$skip"}
done
left_out good 1 "/dev/full: No space left on device" --skip --out access=/dev/full
left_out good 1 "/dev/full: No space left on device" --skip --counters /dev/full
((!bad)) || exit 1
echo PASS
