// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"

	"isthmus/lab/tester"
)

// linuxForwarding is the kernel's own IPv4 forwarding between two veth pairs.
func linuxForwarding() *Peer {
	return &Peer{
		Name: "linux-veth", Does: "forwards IPv4 in the kernel: FIB look-up, TTL, static neighbours; no filter, no connection tracking",
		Note: "over veth, not memif: its ratio is to the gateway on veth. It has no thread that could be pinned: RPS steers its softirq to the " +
			"CPU that the others forward on, and what sending into veth costs stays with the tester",
		Link: LinkVeth, Packets: Plain, Change: NewMACsTTL,
		Version: func(ctx context.Context, _ *Setup) (string, error) {
			for _, tool := range []string{"unshare", "nsenter", "ip"} {
				if _, err := exec.LookPath(tool); err != nil {
					return "", fmt.Errorf("needs %s", tool)
				}
			}
			if os.Geteuid() != 0 {
				return "", fmt.Errorf("needs root for a network namespace")
			}
			return output(ctx, "uname", "-r")
		},
		Start: startLinux,
	}
}

// namespaces numbers the namespaces of this process: the name of an interface that goes away may be taken for a moment longer.
var namespaces atomic.Int32

// forwardScript makes a router in a network namespace of its own, which ends with the shell, at the latest when standard
// input closes. The other ends of its interfaces are in the namespace of process $outer.
const forwardScript = `set -e
mount -t sysfs sysfs /sys # shows the interfaces of this namespace
outside() { nsenter --target "$outer" --net -- "$@"; }
end() { # NAME FAR MAC FAR-MAC NETWORK ADDRESS NEIGHBOUR
	ip link add "$1" address "$3" mtu 9200 type veth peer name "$2"
	ip link set "$2" netns "$outer"
	outside ip link set "$2" mtu 9200 addrgenmode none up
	ip link set "$1" addrgenmode none up
	echo 0 >"/proc/sys/net/ipv4/conf/$1/rp_filter"
	ip addr add "$6/30" dev "$1"
	ip neigh add "$7" lladdr "$4" nud permanent dev "$1"
	ip route add "$5/24" via "$7"
	[ -z "$rps" ] || echo "$rps" >"/sys/class/net/$1/queues/rx-0/rps_cpus"
}
echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
end access "$far_access" "$access_mac" "$access_far_mac" ` + toAccess + ` 192.0.2.1 192.0.2.2
end core "$far_core" "$core_mac" "$core_far_mac" ` + toCore + ` 192.0.2.5 192.0.2.6
echo 1 >/proc/sys/net/ipv4/ip_forward
echo forwarding
read -r end || true
`

func startLinux(ctx context.Context, s Setup) (*Running, error) {
	name := fmt.Sprintf("isp%d-%d", os.Getpid(), namespaces.Add(1))
	far := map[string]string{access: name + "a", core: name + "c"}
	environment := []string{
		"outer=" + strconv.Itoa(os.Getpid()), "rps=" + cpuMask(s.CPU), "far_access=" + far[access], "far_core=" + far[core],
		"access_mac=" + s.AccessMAC, "access_far_mac=" + s.AccessFarMAC, "core_mac=" + s.CoreMAC, "core_far_mac=" + s.CoreFarMAC,
	}
	p, err := spawn([]string{"unshare", "--net", "--mount", "--", "sh", "-c", forwardScript}, environment)
	if err != nil {
		return nil, err
	}
	r := &Running{
		Command: []string{"sysctl net.ipv4.ip_forward=1; ip route add " + toAccess + "/24, " + toCore + "/24; RPS to CPU " + strconv.Itoa(s.CPU)},
		Exited:  p.exited, Words: p.words, Ports: map[string]tester.Port{},
		Stop: func() {
			// One end takes the other with it, and at once; the end of a namespace takes its time.
			for _, end := range far {
				exec.Command("ip", "link", "del", end).Run()
			}
			p.stop()
		},
	}
	for end, device := range far {
		r.Ports[end] = tester.Port{Driver: "net_af_packet", Device: device}
	}
	if err := p.await(ctx, "forwarding\n", ""); err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

// cpuMask is a CPU as the kernel writes sets of CPUs: groups of 32 bits, in hexadecimal, joined by commas. Empty for none.
func cpuMask(cpu int) string {
	if cpu < 0 {
		return ""
	}
	return fmt.Sprintf("%x", uint32(1)<<(cpu%32)) + strings.Repeat(",00000000", cpu/32)
}
