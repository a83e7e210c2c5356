#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --long: a virtual machine
# Network cards of a machine without IOMMU: by uio_pci_generic, which knows physical addresses alone. Debian's kernel
# has no vfio for it (VFIO_NOIOMMU).
# usage: uio_test.sh [KIND]
# shellcheck source=test/lib/net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/net.sh"
# shellcheck source=test/lib/vm.sh
. "$TEST_ROOT/test/lib/vm.sh"
own_namespaces "$@"

VM_IOMMU=()
vm_card "${1:-e1000}" home
vm_card "${1:-e1000}" upf
vm_start
vm_bind uio_pci_generic home upf
kernel_address upf 10.30.0.2/24 fd00:30::2/64
use_config "s|net_af_packet, device: veth-access|pci, device: \"${VM_ADDRESS[home]}\"|
	s|net_af_packet, device: veth-core|pci, device: \"${VM_ADDRESS[upf]}\"|
	s|huge_pages: \"off\"|huge_pages: \"on\"|; s|packet_buffers: 8192|packet_buffers: 32768|"
vm_start_gateway
all_traffic home upf
echo PASS
