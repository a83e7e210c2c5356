# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For many homes that sign in at once: ports, and $DIR/isthmus.yaml, made from deploy/examples/bng.yaml. All homes are
# accepted, below limits, with enough addresses. The path to the control thread has room for what arrives while it waits
# for a CPU.
# usage: many_homes HOMES
many_homes() {
	local buffers=$(($1 >= 20000 ? 65536 : 32768)) bits=$(($1 > 65000 ? 15 : 16))
	bng_links
	ip route replace "100.64.0.0/$bits" via 10.60.0.1
	sed -e '/^ *\(dp_\)\?socket:/d' -e 's/methods: \[local\]/methods: [accept]/' \
		-e "s/packet_buffers: 8192/packet_buffers: $buffers\n  limits: {sessions: $(($1 + 1024))}/" \
		-e 's/idle_sleep: true/&\n  rates: {punt: 200000, punt_port: 200000, punt_s_tag: 100000}/' \
		-e "s|100.64.0.\([01]\)/16|100.64.0.\1/$bits|" -e '/^access:/a\  limits: {rate: 0}' \
		"$TEST_ROOT/deploy/examples/bng.yaml" >"$DIR/isthmus.yaml"
}

ids() { isthmus status -j | jq -r '"\(.pid) \(.dp_pid)"'; }
# usage: resident PID (bytes)
resident() { awk '/^Rss(Anon|Shmem)/ { sum += $2 * 1024 } END { print sum }' "/proc/$1/status"; }
nobody() { (($(isthmus show total -j | jq .sessions) == 0)); }
