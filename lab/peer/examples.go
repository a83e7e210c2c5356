// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// exactMatch is l3fwd with a table of flows.
const exactMatch = "l3fwd-em"

// exactFlows is the most flows of a direction that a table of l3fwd's exact match is filled with.
const exactFlows = 65536

// FindPrograms returns the folder where scripts/peers.sh puts the examples that it builds: as given, or in the
// checkout that this program was built in.
func FindPrograms(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(filepath.Dir(self)), ".tools", "peers", "bin"), nil
}

// example is the path of a built example, and an error with the next step otherwise.
func example(name, folder string) (string, error) {
	folder, err := FindPrograms(folder)
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, name)
	if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
		return path, nil
	}
	if log, err := os.ReadFile(path + ".failed"); err == nil {
		return "", fmt.Errorf("DPDK's example %s could not be built here:\n%s", name, strings.TrimSpace(string(log)))
	}
	return "", fmt.Errorf("DPDK's example %s is not built: run scripts/peers.sh (it looked in %s)", name, folder)
}

// builtFrom reads which DPDK the examples were built from, and compares it with the installed one.
func builtFrom(ctx context.Context, folder string) (string, error) {
	folder, err := FindPrograms(folder)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(folder, "VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("DPDK's examples are not built: run scripts/peers.sh (it looked in %s)", folder)
	} else if err != nil {
		return "", err
	}
	built := ""
	for line := range strings.Lines(string(text)) {
		if version, ok := strings.CutPrefix(line, "dpdk "); ok {
			built = strings.TrimSpace(version)
		}
	}
	installed, err := output(ctx, "dpkg-query", "-W", "-f", "${source:Version}", "libdpdk-dev")
	if err != nil {
		return "", err
	}
	if built != installed {
		return "", fmt.Errorf("DPDK's examples were built from %s and %s is installed: run scripts/peers.sh", built,
			installed)
	}
	return built, nil
}

// examples are the programs of scripts/peers.sh.
func examples() []*Peer {
	routes := "looks the destination up in %s (a route for each port), checks the IPv4 header, decrements TTL, " +
		"writes both MAC addresses"
	soft := "its packet types come from software (--parse-ptype), and its request for checksum offload is patched " +
		"away: net_memif has neither"
	return []*Peer{
		newExample("l3fwd", "l3fwd-lpm", fmt.Sprintf(routes, "rte_lpm"), soft, Plain, NewMACsTTL, l3fwd("lpm")),
		newExample("l3fwd", "l3fwd-fib", fmt.Sprintf(routes, "rte_fib"), soft, Plain, NewMACsTTL, l3fwd("fib")),
		newExample("l3fwd", exactMatch, "looks the five-tuple up in rte_hash (every flow is an entry), checks the "+
			"IPv4 header, decrements TTL, "+
			"writes both MAC addresses", soft, Plain, NewMACsTTL, l3fwd("em")),
		newExample("l3fwd-graph", "l3fwd-graph",
			"l3fwd on rte_graph with DPDK's own nodes, rte_lpm, node statistics on",
			"its main thread, which spins beside the forwarding, is patched to sleep", Plain, NewMACsTTL,
			l3fwdGraph()),
		newExample("qos_sched", "qos_sched", "queues each packet in rte_sched by its tags (4,096 pipes of 16 queues "+
			"a port) and serves it; no rate is limited",
			"patched to receive and schedule in one thread; its own form takes a core for each", Tagged, Nothing,
			qosSched()),
		newExample("ip_pipeline", "ip_pipeline",
			"looks the destination up in an rte_pipeline table (LPM), writes the Ethernet header",
			"configured as its example route.cli; patched to ask for frames of 1518 bytes, net_memif's most, in "+
				"place of 9000, and to let its console sleep", Plain, NewMACs,
			ipPipeline()),
	}
}

func newExample(program, name, does, note string, packets Packets, change Change, d *dpdk) *Peer {
	d.program = func(s *Setup) (string, error) { return example(program, s.ProgramsFolder) }
	p := &Peer{Name: name, Does: does, Note: note, Link: LinkMemif, Packets: packets, Change: change}
	p.Start = d.start(LinkMemif)
	p.over = func(link string) { p.Link, p.Start = link, d.start(link) }
	p.queues = !d.oneCPU
	p.Version = func(ctx context.Context, s *Setup) (string, error) {
		if _, err := example(program, s.ProgramsFolder); err != nil {
			return "", err
		}
		return builtFrom(ctx, s.ProgramsFolder)
	}
	return p
}

// nextHops are the tester's MAC addresses as l3fwd takes them.
func nextHops(s *Setup) []string {
	var list []string
	for i, e := range s.Ends {
		list = append(list, fmt.Sprintf("--eth-dest=%d,%s", i, e.FarMAC))
	}
	return list
}

// portsOnCore are all ports, with one queue each that an lcore polls.
func portsOnCore(s *Setup, lcore int) []string {
	var list []string
	for i := range s.Ends {
		list = append(list, fmt.Sprintf("(%d,0,%d)", i, lcore))
	}
	return []string{"-p", fmt.Sprintf("%#x", 1<<len(s.Ends)-1), "-P", "--config=" + strings.Join(list, ",")}
}

// l3fwd with one of its look-up methods.
func l3fwd(lookup string) *dpdk {
	return &dpdk{
		oneCPU: true,
		arguments: func(s *Setup) ([]string, error) {
			descriptors := strconv.Itoa(s.Descriptors)
			args := append(portsOnCore(s, 0), "--parse-ptype", "--lookup="+lookup,
				"--rx-queue-size="+descriptors, "--tx-queue-size="+descriptors)
			args = append(args, nextHops(s)...)
			if len(s.Ends) > 2 {
				args = append(args, "--per-port-pool") // net_af_xdp takes many buffers
			}
			if lookup != "em" {
				return args, nil // its built-in routes are those of plain packets
			}
			rules4, rules6 := filepath.Join(s.Dir, "em-v4.cfg"), filepath.Join(s.Dir, "em-v6.cfg")
			if err := writeExactRules(rules4, len(s.Ends), s.Flows); err != nil {
				return nil, err
			}
			// It takes both files or none.
			if err := os.WriteFile(rules6, []byte("R2001:200::1 2001:200::2 9 9 0x11 0\n"), 0o644); err != nil {
				return nil, err
			}
			return append(args, "--rule_ipv4="+rules4, "--rule_ipv6="+rules6), nil
		},
		ready: "Checking link status", memoryMB: 1536,
	}
}

// writeExactRules writes l3fwd's exact-match entries of all plain flows to all ports.
func writeExactRules(file string, ports, flows int) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for out := range ports {
		source, to := netip.MustParseAddr(plainSource), netip.MustParseAddr(Network(out)).As4()
		for flow := range max(1, min(flows, exactFlows)) {
			to[3] = byte(flow % plainNet)
			// Destination, source, their ports, protocol, output port.
			fmt.Fprintf(w, "R%s %s %d %d 0x11 %d\n", netip.AddrFrom4(to), source, plainService, plainPort, out)
			source = source.Next()
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

func l3fwdGraph() *dpdk {
	return &dpdk{
		arguments: func(s *Setup) ([]string, error) {
			return append(portsOnCore(s, 1), nextHops(s)...), nil
		},
		ready: "Checking link status", memoryMB: 512,
	}
}

// portRate is the rate configured in rte_sched for a memif port: the 100 Gbit/s that it reports, in bytes per second.
const portRate = "12500000000"

func qosSched() *dpdk {
	return &dpdk{
		arguments: func(s *Setup) ([]string, error) {
			file := filepath.Join(s.Dir, "qos.cfg")
			if err := os.WriteFile(file, []byte(qosProfile()), 0o644); err != nil {
				return nil, err
			}
			return []string{
				"--mnc", "0", "--pfc", "0,1,1,1", "--pfc", "1,0,1,1", "--msz", "32768",
				"--rsz", fmt.Sprintf("%d,8192,%d", s.Descriptors, s.Descriptors), "--cfg", file,
			}, nil
		},
		ready: "Waiting for link on port", memoryMB: 768,
	}
}

// qosProfile is its profile.cfg with every rate at the port's.
func qosProfile() string {
	var b strings.Builder
	rates := func(period int) {
		fmt.Fprintf(&b, "tb rate = %s\ntb size = 1000000\n", portRate)
		for class := range 13 {
			fmt.Fprintf(&b, "tc %d rate = %s\n", class, portRate)
		}
		fmt.Fprintf(&b, "tc period = %d\n", period)
	}
	b.WriteString("[port]\nframe overhead = 24\nnumber of subports per port = 1\n[subport 0]\nnumber of pipes per " +
		"subport = 4096\n")
	fmt.Fprintf(&b, "queue sizes =%s\npipe 0-4095 = 0\n[subport profile 0]\n", strings.Repeat(" 64", 13))
	rates(10)
	b.WriteString("[pipe profile 0]\n")
	rates(40)
	b.WriteString("tc 12 oversubscription weight = 1\ntc 12 wrr weights = 1 1 1 1\n")
	return b.String()
}

func ipPipeline() *dpdk {
	return &dpdk{
		arguments: func(s *Setup) ([]string, error) {
			file := filepath.Join(s.Dir, "route.cli")
			if err := os.WriteFile(file, []byte(pipelineScript(s)), 0o644); err != nil {
				return nil, err
			}
			// its console, unused, at any port
			return []string{"-s", file, "-h", "127.0.0.1", "-p", "0"}, nil
		},
		// It prints each line of its script before it obeys it; the last one starts the forwarding.
		ready: "thread 1 pipeline PIPELINE0 enable", bad: "\" failed.", memoryMB: 256,
	}
}

// pipelineScript is its route.cli with our ports and routes. Offsets count from the buffer's start: 128 bytes of
// mbuf and 128 of headroom before the frame.
func pipelineScript(s *Setup) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("mempool MEMPOOL0 buffer 2304 pool 32K cache 256 cpu 0")
	for n := range 2 {
		p("link LINK%d dev net_memif%d rxq 1 %d MEMPOOL0 txq 1 %d promiscuous on", n, n, s.Descriptors, s.Descriptors)
	}
	p("table action profile AP0 ipv4 offset 270 fwd encap ether")
	p("pipeline PIPELINE0 period 10 offset_port_id 0 cpu 0")
	for n := range 2 {
		p("pipeline PIPELINE0 port in bsz 32 link LINK%d rxq 0", n)
	}
	for n := range 2 {
		p("pipeline PIPELINE0 port out bsz 32 link LINK%d txq 0", n)
	}
	p("pipeline PIPELINE0 port out bsz 32 sink")
	p("pipeline PIPELINE0 table match lpm ipv4 offset 286 size 4K action AP0")
	for n := range 2 {
		p("pipeline PIPELINE0 port in %d table 0", n)
	}
	p("pipeline PIPELINE0 table 0 rule add match default action fwd port 2")
	for n, e := range s.Ends {
		p("pipeline PIPELINE0 table 0 rule add match lpm ipv4 %s 24 action fwd port %d encap ether %s %s",
			Network(n), n, e.FarMAC, e.MAC)
	}
	p("thread 1 pipeline PIPELINE0 enable")
	return b.String()
}
