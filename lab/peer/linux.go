// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"isthmus/lab/tester"
)

// Linux is the name of the kernel's forwarding.
const Linux = "linux-veth"

// linuxForwarding is the kernel's own IPv4 forwarding between veth pairs.
func linuxForwarding(link string) *Peer {
	return &Peer{
		Name: Linux, Does: "forwards IPv4 in the kernel: FIB look-up, TTL, static neighbours; no filter, no " +
			"connection tracking",
		Note: "over veth, not memif: its ratio is to the gateway on veth. It has no thread that could be pinned: RPS " +
			"steers its softirq to the " +
			"CPU that the others forward on, and what sending into veth costs stays with the tester",
		Link: link, Packets: Plain, Change: NewMACsTTL,
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
		Start: startLinux(link),
	}
}

// forwardScript makes a router in a network namespace of its own, which ends with the shell, at the latest when
// standard input closes. The interfaces come from the namespace of process $outer, where their other ends stay. $ends
// has for each port: name, network, address, neighbour, the neighbour's MAC address.
const forwardScript = `set -e
mount -t sysfs sysfs /sys # shows the interfaces of this namespace
for all in all default; do echo 0 >"/proc/sys/net/ipv4/conf/$all/rp_filter"; done
outside() { nsenter --target "$outer" --net -- "$@"; }
echo "$ends" | while read -r name net address neighbour mac; do
	outside ip link set "$name" netns $$
	ip link set "$name" addrgenmode none up
	ip addr add "$address/30" dev "$name"
	ip neigh add "$neighbour" lladdr "$mac" nud permanent dev "$name"
	ip route add "$net/24" via "$neighbour"
	[ -z "$rps" ] || echo "$rps" >"/sys/class/net/$name/queues/rx-0/rps_cpus"
done
echo 1 >/proc/sys/net/ipv4/ip_forward
echo forwarding
read -r end || true
`

func startLinux(link string) func(ctx context.Context, s Setup) (*Running, error) {
	return func(ctx context.Context, s Setup) (*Running, error) {
		r := &Running{Ports: map[string]tester.Port{}}
		var made []*tester.Veth
		stop := func() {}
		r.Stop = func() {
			// Before the namespace, whose end takes its time.
			for _, v := range made {
				v.Remove()
			}
			stop()
		}
		var ends, routes []string
		for i, e := range s.Ends {
			v, driver := vethPair(&s, link, i)
			if err := v.Make(ctx); err != nil {
				r.Stop()
				return nil, err
			}
			made, r.Ports[e.Name] = append(made, v), tester.Port{Driver: driver, Device: v.Far}
			ends = append(ends, fmt.Sprintf("%s %s 192.0.2.%d 192.0.2.%d %s", v.Near, Network(i), 4*i+1, 4*i+2,
				e.FarMAC))
			routes = append(routes, Network(i)+"/24")
		}
		p, err := spawn([]string{"unshare", "--net", "--mount", "--", "sh", "-c", forwardScript}, []string{
			"outer=" + strconv.Itoa(os.Getpid()), "rps=" + cpuMask(s.CPU),
			"ends=" + strings.Join(ends, "\n"),
		})
		if err != nil {
			r.Stop()
			return nil, err
		}
		r.Command = []string{fmt.Sprintf("sysctl net.ipv4.ip_forward=1; ip route add %s; RPS to CPU %d",
			strings.Join(routes, ", "), s.CPU)}
		r.Exited, r.Words, stop = p.exited, p.words, p.stop
		if err := p.await(ctx, "forwarding\n", ""); err != nil {
			r.Stop()
			return nil, err
		}
		return r, nil
	}
}

// cpuMask is a CPU as the kernel writes sets of CPUs: groups of 32 bits, in hexadecimal, joined by commas. Empty
// for none.
func cpuMask(cpu int) string {
	if cpu < 0 {
		return ""
	}
	return fmt.Sprintf("%x", uint32(1)<<(cpu%32)) + strings.Repeat(",00000000", cpu/32)
}
