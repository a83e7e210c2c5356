# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A virtual machine for tests, in software emulation: Debian's kernel, with drivers and cards that this machine may
# lack, on this machine's files (test/vm/init). It ends with the test's namespaces. scripts/vm.sh gets and makes its
# files.
#
# usage: . test/lib/net.sh; . test/lib/vm.sh; own_namespaces "$@"; vm_card e1000 upf0; vm_start; in_vm COMMAND...

VM_TOOLS=$(realpath -m "$TEST_ROOT/.tools/vm") # the machine follows no link while it mounts
VM_BIN=$TEST_ROOT/build-portable # QEMU emulates no AVX-512
VM_SECONDS=90 # one command in it, at most
VM_OPTIONS=()
VM_IOMMU=(-device intel-iommu) # none: VM_IOMMU=()
declare -A VM_ADDRESS=() # PCI address of a card

# A card in the machine, in a slot of its own. The other end of its cable is a TAP interface here, or in the gateway's
# namespace. This end's kernel spreads over the queues by flow.
# usage: vm_card KIND INTERFACE [QEMU'S DEVICE OPTIONS [QUEUES]]
vm_card() {
	local kind=$1 interface=$2 queues=${4:-1} several=()
	((queues == 1)) || several=(multi_queue)
	ip tuntap add "$interface" mode tap "${several[@]}"
	sysctl -qw "net.ipv6.conf.$interface.disable_ipv6=1"
	ip link set "$interface" mtu 9216 up
	vm_cabled_card "$kind" "$interface" "${3:-}" \
		"tap,ifname=$interface,queues=$queues,script=no,downscript=no,vnet_hdr=off"
}

# usage: vm_cabled_card KIND NAME OPTIONS NETDEV: the other end is what QEMU calls a net device
vm_cabled_card() {
	local kind=$1 name=$2 options=$3 netdev=$4 number=$((${#VM_ADDRESS[@]} + 1)) mac
	mac=$(printf '02:00:00:00:fd:%02x' "$number")
	# Its memory is reached through the IOMMU.
	[[ $kind != virtio-net-pci ]] || options+=,disable-legacy=on,iommu_platform=on
	VM_OPTIONS+=(-device "pcie-root-port,id=slot-$name,bus=pcie.0,addr=$((number + 1)),chassis=$number,slot=$number"
		-netdev "$netdev,id=cable-$name"
		-device "$kind,id=$name,bus=slot-$name,netdev=cable-$name,mac=$mac${options:+,${options#,}}")
	VM_ADDRESS[$name]=$(printf '0000:%02x:00.0' "$number")
}

# A cable between cards in the machine. usage: vm_cable NUMBER; the net device of each of its ends
vm_cable() { printf 'hubport,hubid=%s' "$1"; }

# Starts the machine with the cards named so far, and waits for it.
vm_start() {
	[[ -s $VM_TOOLS/initrd ]] || fail "no kernel in $VM_TOOLS: ./dev test vm gets it"
	[[ -c /dev/net/tun ]] || skip "no /dev/net/tun"
	ip tuntap add vm mode tap
	ip addr add 169.254.254.1/30 dev vm
	ip link set vm up
	qemu-system-x86_64 -nodefaults -no-user-config -machine q35 -accel tcg,thread=multi -cpu max -smp 2 -m 1536M \
		-display none -no-reboot -serial "file:$DIR/vm.log" -monitor "unix:$DIR/monitor,server,nowait" \
		-kernel "$VM_TOOLS/vmlinuz" -initrd "$VM_TOOLS/initrd" \
		-append "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check intel_iommu=on iommu=pt \
hugepages=192 TOOLS=$VM_TOOLS GUEST=$TEST_ROOT/test/vm/${VM_INIT:-guest.sh}" \
		"${VM_IOMMU[@]}" \
		-virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
		-netdev tap,id=vm,ifname=vm,script=no,downscript=no,vnet_hdr=off \
		-device virtio-net-pci,netdev=vm,mac=02:00:00:00:fe:02,addr=0x1e \
		"${VM_OPTIONS[@]}" >"$DIR/qemu.log" 2>&1 &
	wait_for 90 grep -q "the machine is ready" "$DIR/vm.log" ||
		fail "the virtual machine does not start: $(cat "$DIR/qemu.log" "$DIR/vm.log")"
}

# Runs a command in the machine. Its output (both streams) and its exit status are this function's; 124: out of
# time.
in_vm() { vm_send "$(printf '%q ' "$@")" </dev/null; }

# usage: vm_write FILE: standard input, into the machine
vm_write() { vm_send "cat >$(printf %q "$1")"; }

vm_send() {
	local socket answer
	exec {socket}<>/dev/tcp/169.254.254.2/1
	printf '%s\n%s\n' "$1" "$(base64 -w 0)" >&"$socket"
	IFS= read -r -t "$VM_SECONDS" -d '' answer <&"$socket" || answer+=$'\n124'
	exec {socket}>&-
	printf '%s' "${answer%$'\n'*}"
	return "${answer##*$'\n'}"
}

# usage: vm_monitor COMMAND...: of QEMU's monitor
vm_monitor() { printf '%s\n' "$*" | socat -t 10 - "UNIX-CONNECT:$DIR/monitor" >>"$DIR/qemu.log"; }

# The machine's own kernel has the cards, under their names here.
# usage: vm_give KERNEL_MODULE CARD...
vm_give() {
	local card
	in_vm modprobe "$1"
	for card in "${@:2}"; do
		# shellcheck disable=SC2016 # the machine's variables
		in_vm bash -c 'for i in /sys/class/net/*; do
			[[ $(realpath "$i") != */'"${VM_ADDRESS[$card]}"'/* ]] ||
				ip link set "${i##*/}" name '"$card"' mtu 9216 up
		done'
	done
}

# ---- the gateway in it -----------------------------------------------------------------------------------------------

# usage: vm_bind KERNEL_DRIVER CARD...
vm_bind() {
	local driver=$1 card
	shift
	in_vm modprobe "$driver"
	for card; do
		in_vm bash -c "cd /sys/bus/pci/devices/${VM_ADDRESS[$card]} && echo $driver >driver_override &&
			if [ -e driver ]; then echo ${VM_ADDRESS[$card]} >driver/unbind; fi &&
			echo ${VM_ADDRESS[$card]} >/sys/bus/pci/drivers_probe"
	done
}

# Brings its log here, for show_state.
vm_log() { in_vm cat /mnt/isthmus.log >"$DIR/isthmus.log" || true; }

# The command line works here. usage: vm_command_line SOCKET: of the control plane in the machine
vm_command_line() {
	in_vm bash -c "socat TCP-LISTEN:2,fork,reuseaddr UNIX-CONNECT:$1 </dev/null >/dev/null 2>&1 &"
	wait_for 10 bash -c ': </dev/tcp/169.254.254.2/2'
	[[ -S $ISTHMUS_SOCKET ]] || socat "UNIX-LISTEN:$ISTHMUS_SOCKET,fork" TCP:169.254.254.2:2 &
	wait_for 5 test -S "$ISTHMUS_SOCKET"
}

# As start_gateway.
vm_start_gateway() {
	vm_write /mnt/isthmus.yaml <"$DIR/isthmus.yaml"
	in_vm bash -c "setsid $VM_BIN/isthmus --socket /mnt/isthmus.sock run -c /mnt/isthmus.yaml \
		--dp-socket /mnt/dp.sock \
		--metrics off --spawn </dev/null >>/mnt/isthmus.log 2>&1 &"
	vm_command_line /mnt/isthmus.sock
	in_vm "$VM_BIN/isthmus" --socket /mnt/isthmus.sock status --wait 120s >"$DIR/status" ||
		fail "the gateway does not start: $(cat "$DIR/status"; in_vm cat /mnt/isthmus.log)"
}

# Another configuration of $DIR/isthmus.yaml: a port of cards takes other settings when it is created again.
vm_apply() {
	vm_write /mnt/isthmus.yaml <"$DIR/isthmus.yaml"
	in_vm bash -c "sed -n '/^engine:/,/^$/p' /mnt/isthmus.yaml >/mnt/none.yaml
		for file in none isthmus; do
			$VM_BIN/isthmus --socket /mnt/isthmus.sock config apply /mnt/\$file.yaml || exit
		done"
}
