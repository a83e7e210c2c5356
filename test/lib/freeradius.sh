# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The ports of start_freeradius. usage: freeradius_listeners [radsec]
freeradius_listeners() {
	local kind port=1812
	if [[ $1 == radsec ]]; then
		cat <<-EOF
			listen {
				type = auth+acct
				ipaddr = 127.0.0.1
				port = 2083
				proto = tcp
				clients = tls
				tls {
					private_key_file = $DIR/raddb/server.key
					certificate_file = $DIR/raddb/server.pem
					ca_file = $DIR/raddb/ca.pem
					require_client_cert = yes
					tls_min_version = 1.2
					tls_max_version = 1.2
				}
			}
		EOF
		return
	fi
	for kind in auth acct; do
		printf 'listen {\ntype = %s\nipaddr = 127.0.0.1\nport = %s\n}\n' "$kind" "$((port++))"
	done
}

# FreeRADIUS in the gateway's namespace, at 127.0.0.1:1812 and 1813, secret example-only. It is configured to sign its
# answers, which 3.2.1 does not by default. Accounting records are in $DIR/raddb/detail.
# usage: start_freeradius USERS [radsec]: users in the format of its module files; radsec: by TLS alone, at port 2083
start_freeradius() {
	local raddb=$DIR/raddb
	install -D /dev/null "$raddb/dictionary"
	[[ ${2:-} != radsec ]] || certificates "$raddb"
	printf '%s\n' "$1" >"$raddb/users"
	cat >"$raddb/radiusd.conf" <<-EOF
		prefix = /usr
		libdir = /usr/lib/freeradius
		confdir = $raddb
		raddbdir = $raddb
		logdir = $raddb
		run_dir = $raddb
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
		clients tls {
			client gateway {
				ipaddr = 127.0.0.1
				proto = tls
				secret = radsec
			}
		}
		$([[ ${2:-} != radsec ]] || printf 'thread pool {\n}')
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
			$(freeradius_listeners "${2:-}")
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
	export FREERADIUS="nsenter --net=/run/netns/gateway -- freeradius -f -l $raddb/log -d $raddb -n radiusd"
	$FREERADIUS &
	wait_for 20 grep -q "Ready to process requests" "$raddb/log" || fail "FreeRADIUS: $(cat "$raddb/log")"
}

# An authority's certificate, and a server's and a client's with their keys. usage: certificates FOLDER
certificates() {
	local name of=(-CA "$1/ca.pem" -CAkey "$1/ca.key" -addext subjectAltName=IP:127.0.0.1
		-addext basicConstraints=CA:FALSE)
	local make=(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2)
	"${make[@]}" -subj /CN=authority -keyout "$1/ca.key" -out "$1/ca.pem" 2>/dev/null
	for name in server client; do
		"${make[@]}" "${of[@]}" -subj "/CN=$name" -keyout "$1/$name.key" -out "$1/$name.pem" 2>/dev/null
	done
}

# Writes $DIR/isthmus.yaml: deploy/examples/bng.yaml with FreeRADIUS for authentication, accounting and CoA, changed by
# sed scripts. usage: radius_gateway [SED_SCRIPT...] <MORE_OF_ACCESS_AND_BEHIND_IT
radius_gateway() {
	local script scripts=() server='secret: example-only'
	[[ ! -f $DIR/raddb/ca.pem ]] || server="port: 2083, accounting_port: 2083, tls: {ca: $DIR/raddb/ca.pem,
			    certificate: $DIR/raddb/client.pem, key: $DIR/raddb/client.key}"
	for script; do
		scripts+=(-e "$script")
	done
	{
		sed -e '/^ *\(dp_\)\?socket:/d' -e '/^aaa:/,/^$/d' "${scripts[@]}" "$TEST_ROOT/deploy/examples/bng.yaml"
		cat
		cat <<-EOF
			aaa: {methods: [radius], name: "{port}:{svlan}.{cvlan}"}
			radius:
			  nas: {identifier: bng-1, address: 127.0.0.1}
			  servers: [{name: one, address: 127.0.0.1, $server, message_authenticator: anywhere}]
			  coa:
			    listen: [127.0.0.1]
			    clients: [{address: 127.0.0.1, secret: example-only, message_authenticator: optional}]
		EOF
	} >"$DIR/isthmus.yaml"
}
