#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: a virtual machine
# The units of deploy/systemd under systemd itself, installed as docs/running.md says, on cards behind vfio-pci and in
# huge pages. All traffic, a clone in a namespace, a reload, both programs restarted.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/vm.sh
. "$TEST_ROOT/test/lib/vm.sh"
own_namespaces "$@"

VM_INIT=systemd.sh
vm_card virtio-net-pci home
vm_card virtio-net-pci upf
vm_start
vm_bind vfio-pci home upf
kernel_address upf 10.30.0.2/24 fd00:30::2/64
use_config "s|net_af_packet, device: veth-access|pci, device: \"${VM_ADDRESS[home]}\"|
	s|net_af_packet, device: veth-core|pci, device: \"${VM_ADDRESS[upf]}\"|
	s|huge_pages: \"off\"|huge_pages: \"on\"|; s|packet_buffers: 8192|packet_buffers: 32768|
	s|name: n3,|& clone: {device: n3, namespace: fabric},|
	\$acontrol: {state: /var/lib/isthmus}"

in_vm install -m 755 "$VM_BIN/isthmus" "$VM_BIN/dataplane/isthmus-dp" /usr/local/bin
in_vm useradd --system --no-create-home isthmus
in_vm install -d /etc/isthmus
vm_write /etc/isthmus/isthmus.yaml <"$DIR/isthmus.yaml"
in_vm bash -c "cp $TEST_ROOT/deploy/systemd/*.service /etc/systemd/system
	for unit in isthmus isthmus-dp; do
		install -D -m 644 $TEST_ROOT/deploy/systemd/clone.conf /etc/systemd/system/\$unit.service.d/clone.conf
	done
	chown isthmus /dev/vfio/[0-9]*
	modprobe tun && chmod 666 /dev/net/tun" # both as udev would
in_vm ip netns add fabric
vm_log() { in_vm journalctl --no-pager -o cat >"$DIR/isthmus.log" || true; }
in_vm systemctl daemon-reload
in_vm systemctl start isthmus-dp isthmus
vm_command_line /run/isthmus/isthmus.sock
in_step() { isthmus status --wait 60s >"$DIR/status" || fail "the gateway is not there: $(cat "$DIR/status")"; }
in_step
cloned() { isthmus show clone -j | jq -e 'all(.attached)' >/dev/null; }
wait_for 20 cloned || fail "there is no clone: $(isthmus show clone)"
all_traffic home upf

in_vm systemctl reload isthmus || fail "it is not loaded again"
in_vm systemctl restart isthmus
in_step
dp=$(isthmus status -j | jq .dp_pid)
another_dp() { isthmus status -j | jq -e ".dp_pid != 0 and .dp_pid != $dp" >/dev/null; }
in_vm systemctl restart isthmus-dp
wait_for 60 another_dp || fail "the data plane is not there again"
in_step
wait_for 20 cloned || fail "there is no clone any more: $(isthmus show clone)"
all_traffic home upf
in_vm test -s /var/lib/isthmus/audit.log || fail "no audit log"
echo PASS
