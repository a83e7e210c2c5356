// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// device is a card, or an interface of Linux, opened by a port or a member of a bond.
type device struct {
	port      string
	driver    string // of the configuration
	name      string // PCI address, or interface
	folder    string // of the card in /sys; "" without a card
	netdev    string // Linux interface; "" when the kernel has none
	queueSize int
}

func (r *report) devices() []device {
	var all []device
	add := func(port, driver, name string, queueSize uint32) {
		d := device{port: port, driver: driver, name: name, queueSize: int(queueSize)}
		switch driver {
		case "pci":
			d.folder = "sys/bus/pci/devices/" + name
			if nets := r.folder(d.folder, "net"); len(nets) > 0 {
				d.netdev = nets[0]
			}
		case "net_af_packet", "net_af_xdp":
			d.netdev = name
			if address := r.link("sys/class/net", name, "device"); pciAddress.MatchString(address) {
				d.folder = "sys/bus/pci/devices/" + address
			}
		default:
			return
		}
		all = append(all, d)
	}
	for _, p := range r.Ports {
		add(string(p.Name), p.Driver, p.Device, p.QueueSize)
		for _, m := range p.Bond.Members {
			add(string(p.Name), m.Driver, m.Device, p.QueueSize)
		}
	}
	return all
}

var pciAddress = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// Drivers of the kernel under which DPDK opens a card, and those that share it with the kernel.
var userDrivers = []string{"vfio-pci", "uio_pci_generic", "igb_uio", "mlx5_core", "mlx4_core", "mana"}

const withoutIOMMU = "module/vfio/parameters/enable_unsafe_noiommu_mode"

func iommu(r *report) {
	byVFIO := false
	for _, d := range r.devices() {
		byVFIO = byVFIO || (d.driver == "pci" && r.link(d.folder, "driver") == "vfio-pci")
	}
	if !byVFIO {
		return
	}
	switch {
	case len(r.folder("sys/class/iommu")) == 0 && r.text("sys", withoutIOMMU) != "Y":
		r.say(Fault, "", "no IOMMU, and vfio insists on one", "cards of vfio-pci cannot be opened",
			"kernel command line: intel_iommu=on iommu=pt; without one: echo Y > /sys/"+withoutIOMMU)
	case len(r.folder("sys/class/iommu")) == 0:
		r.say(Note, "", "vfio without IOMMU", "a card may write to any memory of the machine", "")
	default:
		if v, _ := r.parameter("iommu"); v != "pt" {
			r.say(Costs, "", "the IOMMU translates for the kernel's devices, too",
				"cards that the kernel drives (af_packet, af_xdp) are slower",
				"iommu=pt on the kernel's command line")
			return
		}
		r.good("", "on, pass-through for the kernel")
	}
}

func drivers(r *report) {
	for _, d := range r.devices() {
		if d.driver != "pci" {
			if !r.exists("sys/class/net", d.name) {
				r.say(Fault, d.port, "no interface "+d.name, "the port cannot be opened",
					"ip link; or change ports[].device")
				continue
			}
			if d.folder != "" {
				r.good(d.port, "%s, driver %s", d.name, r.link(d.folder, "driver"))
			}
			continue
		}
		driver := r.link(d.folder, "driver")
		switch {
		case !r.exists(d.folder):
			r.say(Fault, d.port, "no device "+d.name, "the port cannot be opened",
				"lspci -D; or change ports[].device")
		case slices.Contains(userDrivers, driver):
			r.good(d.port, "%s, driver %s", d.name, driver)
		default:
			found := "driver " + driver
			if driver == "" {
				found = "no driver"
			}
			r.say(Fault, d.port, d.name+": "+found, "DPDK cannot open it",
				"modprobe vfio-pci; dpdk-devbind.py -b vfio-pci "+d.name)
		}
	}
}

// ethtool is what the program prints of an interface: lines "key: value".
func (r *report) ethtool(option, netdev string) map[string][]string {
	if r.Run == nil || netdev == "" {
		return nil
	}
	text, err := r.Run("ethtool", option, netdev)
	if err != nil {
		return nil
	}
	values := map[string][]string{} // -g and -l say each key twice: the most, then what is set
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			key = strings.TrimSpace(key)
			values[key] = append(values[key], strings.TrimSpace(value))
		}
	}
	return values
}

func firmware(r *report) {
	for _, d := range r.devices() {
		if v := r.ethtool("-i", d.netdev)["firmware-version"]; len(v) > 0 && v[0] != "" {
			r.say(Note, d.port, d.netdev+": "+v[0], "", "")
		}
	}
}

// gbps is what a PCIe link carries: giga-transfers a second, lanes, and 128b/130b (8b/10b below 8 GT/s).
func gbps(speed string, width int) float64 {
	gt, err := strconv.ParseFloat(strings.Fields(speed + " 0")[0], 64)
	if err != nil {
		return 0
	}
	if gt < 8 {
		return gt * float64(width) * 8 / 10
	}
	return gt * float64(width) * 128 / 130
}

func pcie(r *report) {
	for _, d := range r.devices() {
		width, ok := r.number(d.folder, "current_link_width")
		most, _ := r.number(d.folder, "max_link_width")
		if d.folder == "" || !ok || width == 0 {
			continue
		}
		have := gbps(r.text(d.folder, "current_link_speed"), width)
		could := gbps(r.text(d.folder, "max_link_speed"), most)
		speed, known := r.number("sys/class/net", d.netdev, "speed") // Mb/s
		link := float64(speed) / 1000
		switch {
		case d.netdev != "" && known && link > have*0.85: // headers of PCIe packets take the rest
			r.say(Costs, d.port, fmt.Sprintf("PCIe carries %.0f Gb/s, the link %.0f", have, link),
				"loss at full load, whatever the CPUs do",
				"a slot with more lanes or a newer generation (lspci -vv, LnkSta)")
		case have < could*0.99:
			r.say(Costs, d.port,
				fmt.Sprintf("PCIe at %.0f of %.0f Gb/s (x%d of x%d)", have, could, width, most),
				"the card carries less than it can",
				"another slot, or its BIOS setting (lspci -vv, LnkCap, LnkSta)")
		default:
			r.good(d.port, "PCIe %.0f Gb/s, x%d", have, width)
		}
	}
}

func rings(r *report) {
	for _, d := range r.devices() {
		v := r.ethtool("-g", d.netdev)["RX"]
		if len(v) < 2 {
			continue
		}
		most, _ := strconv.Atoi(v[0])
		set, _ := strconv.Atoi(v[1])
		if set < 1024 && most > set {
			r.say(Costs, d.port, fmt.Sprintf("%d receive descriptors of %d", set, most),
				"a pause of a worker longer than the ring loses packets",
				fmt.Sprintf("ethtool -G %s rx %d", d.netdev, min(most, 4096)))
		}
	}
}

func queues(r *report) {
	for _, d := range r.devices() {
		if d.driver == "net_af_packet" {
			continue // one socket takes them all
		}
		v := r.ethtool("-l", d.netdev)["Combined"]
		if len(v) < 2 {
			continue
		}
		most, _ := strconv.Atoi(v[0])
		set, _ := strconv.Atoi(v[1])
		if set < r.Workers && most > set {
			r.say(Costs, d.port, fmt.Sprintf("%d queues for %d workers", set, r.Workers),
				"some workers get their packets handed over by others",
				fmt.Sprintf("ethtool -L %s combined %d", d.netdev, min(most, r.Workers)))
		} else if set < r.Workers {
			r.say(Note, d.port, fmt.Sprintf("%d queues for %d workers", set, r.Workers),
				"some workers get their packets handed over by others", "")
		}
	}
}

func mtus(r *report) {
	for _, n := range r.Narrow {
		r.say(Costs, string(n.Port), fmt.Sprintf("mtu %d, and it carries tunnels", n.MTU),
			"packets of 1,500 bytes leave in two fragments", fmt.Sprintf("ports[].mtu: %d", n.Needs))
	}
}

// offloads of the kernel that make one frame of several.
func offloads(r *report) {
	for _, d := range r.devices() {
		if d.driver == "pci" {
			continue
		}
		var on []string
		features := r.ethtool("-k", d.netdev)
		for _, name := range []string{"generic-receive-offload", "large-receive-offload"} {
			if v := features[name]; len(v) > 0 && strings.HasPrefix(v[0], "on") {
				on = append(on, name)
			}
		}
		short := map[string]string{"generic-receive-offload": "gro", "large-receive-offload": "lro"}
		command := "ethtool -K " + d.netdev
		for _, name := range on {
			command += " " + short[name] + " off"
		}
		if len(on) > 0 {
			r.say(Costs, d.port, strings.Join(on, ", "),
				"frames that the kernel puts together are longer than the MTU, and are dropped",
				command)
		}
	}
}
