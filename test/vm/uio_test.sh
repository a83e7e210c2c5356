#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Network cards without vfio: by uio_pci_generic, which knows physical addresses alone. Debian's kernel has no vfio
# without IOMMU (VFIO_NOIOMMU), so that is what a machine without one is left with.
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/vm.sh
. "$TEST_ROOT/test/lib/vm.sh"
own_namespaces "$@"

KINDS=("$@")
((${#KINDS[@]})) || KINDS=(e1000 vmxnet3)
for i in "${!KINDS[@]}"; do
	vm_card "${KINDS[i]}" "home$i"
	vm_card "${KINDS[i]}" "upf$i"
done
vm_start
in_vm bash -c "! grep -q VFIO_NOIOMMU=y /boot/config-*" || echo "this kernel has vfio without IOMMU"
vm_bind uio_pci_generic "${!VM_ADDRESS[@]}"
for i in "${!KINDS[@]}"; do
	echo "--- ${KINDS[i]}"
	kernel_address "upf$i" 10.30.0.2/24 fd00:30::2/64
	use_config "s|net_af_packet, device: veth-access|pci, device: \"${VM_ADDRESS[home$i]}\"|
		s|net_af_packet, device: veth-core|pci, device: \"${VM_ADDRESS[upf$i]}\"|
		s|huge_pages: \"off\"|huge_pages: \"on\"|; s|packet_buffers: 8192|packet_buffers: 32768|"
	if ((i == 0)); then vm_start_gateway; else vm_apply; fi
	all_traffic "home$i" "upf$i"
	ip addr flush dev "upf$i"
done
echo PASS
