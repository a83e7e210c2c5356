# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# FreeRADIUS in the gateway's namespace, at 127.0.0.1:1812 and 1813, secret example-only. It signs its answers, which
# 3.2.1 does not of its own accord; what accounting tells it is in $DIR/raddb/detail.
# usage: start_freeradius USERS: in the format of its module files
start_freeradius() {
	local raddb=$DIR/raddb
	install -D /dev/null "$raddb/dictionary"
	printf '%s\n' "$1" >"$raddb/users"
	cat >"$raddb/radiusd.conf" <<-EOF
		prefix = /usr
		libdir = /usr/lib/freeradius
		confdir = $raddb
		raddbdir = $raddb
		logdir = $raddb
		run_dir = $raddb
		radacctdir = $raddb
		max_requests = 131072
		log {
			destination = files
			file = $raddb/log
		}
		security {
			reject_delay = 0
			status_server = yes
		}
		client gateway {
			ipaddr = 127.0.0.1
			secret = example-only
			require_message_authenticator = yes
		}
		modules {
			pap {
			}
			chap {
			}
			mschap {
			}
			files {
				filename = $raddb/users
			}
			detail {
				filename = $raddb/detail
			}
		}
		server default {
			listen {
				type = auth
				ipaddr = 127.0.0.1
				port = 1812
			}
			listen {
				type = acct
				ipaddr = 127.0.0.1
				port = 1813
			}
			authorize {
				chap
				mschap
				files
				pap
			}
			authenticate {
				chap
				mschap
				pap
			}
			accounting {
				detail
			}
			post-auth {
				update reply {
					Message-Authenticator := 0x00
				}
				Post-Auth-Type REJECT {
					update reply {
						Message-Authenticator := 0x00
					}
				}
			}
		}
	EOF
	in_gateway freeradius -f -l "$raddb/log" -d "$raddb" -n radiusd &
	wait_for 20 grep -q "Ready to process requests" "$raddb/log" || fail "FreeRADIUS: $(cat "$raddb/log")"
}

# Writes $DIR/isthmus.yaml: deploy/examples/bng.yaml with FreeRADIUS for authentication, accounting and CoA, changed by sed
# scripts. usage: radius_gateway [SED_SCRIPT...] <MORE_OF_ACCESS_AND_BEHIND_IT
radius_gateway() {
	local script scripts=()
	for script; do
		scripts+=(-e "$script")
	done
	{
		sed -e '/^ *\(dp_\)\?socket:/d' -e '/^aaa:/,/^$/d' "${scripts[@]}" "$TEST_ROOT/deploy/examples/bng.yaml"
		cat
		cat <<-EOF
			aaa: {methods: [radius]}
			radius:
			  nas: {identifier: bng-1, address: 127.0.0.1}
			  servers: [{name: one, address: 127.0.0.1, secret: example-only, message_authenticator: anywhere}]
			  coa:
			    listen: [127.0.0.1]
			    clients: [{address: 127.0.0.1, secret: example-only, message_authenticator: optional}]
		EOF
	} >"$DIR/isthmus.yaml"
}
