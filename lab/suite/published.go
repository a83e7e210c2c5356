// SPDX-License-Identifier: Apache-2.0

package suite

import "isthmus/lab/report"

// The paper's figures: Intel, Dell and Red Hat's white paper on a virtual access gateway function. 40 instances with 4
// virtual CPUs each are 80 physical cores (160 hyper-threads); 931 Gb/s of 650 B frames are 179.0 Mpps. The asymmetric
// figure, 682 Gb/s of 504 and 128 B at 89:11, gives two rates: the ratio may be of bits or of packets. Cycles are 1.7
// GHz divided by the rate.
const (
	paperSource = "Intel, Dell and Red Hat, white paper 780931-001US (2023), virtual access gateway function on " +
		"PowerEdge R760"
	paperCores = 80
)

// published returns the figures that ours stand beside.
func published() []report.Paper {
	list := []report.Paper{
		{Profile: symmetric, What: "931 Gb/s, 650 B both ways at 1:1", MppsPerCore: 2.24,
			GbpsPerCore: 931.0 / paperCores},
		{Profile: asymmetric, Ratio: "89:11 of bits", What: "682 Gb/s, 504 B down and 128 B up, 89:11 read as bits",
			MppsPerCore: 2.80,
			GbpsPerCore: 682.0 / paperCores},
		{Profile: asymmetric, Ratio: "89:11 of packets",
			What: "682 Gb/s, 504 B down and 128 B up, 89:11 read as packets", MppsPerCore: 2.30,
			GbpsPerCore: 682.0 / paperCores},
	}
	cycles := []float64{760, 608, 738}
	for i := range list {
		list[i].Source, list[i].Cycles, list[i].Differs = paperSource, cycles[i], differences()
	}
	return list
}

// differences are what a reader must know before he compares.
func differences() []report.Difference {
	return []report.Difference{
		{What: "network card", Theirs: "Intel E810 over PCIe, 2 virtual functions for each instance; its cost is in " +
			"the figure",
			Ours: "none: memif, memory shared by gateway and tester; no card, no PCIe, no interrupts in the figure"},
		{What: "processor", Theirs: "2 x Intel Xeon Platinum 8470N at 1.7 GHz, turbo off, hyper-threading on",
			Ours: "as under Machine below, usually a virtual machine; its clock is not ours to fix"},
		{What: "what a core is", Theirs: "a physical core, both hyper-threads: 80 of them for 40 instances; a " +
			"server's total divided by its cores",
			Ours: "one worker thread on one CPU of the machine, measured alone; a virtual CPU may be half a physical " +
				"core"},
		{What: "load of the machine", Theirs: "all cores at work, sharing caches and memory",
			Ours: "one gateway and the tester"},
		{What: "flows", Theirs: "2 for each instance", Ours: "those of 1,000 subscribers, in random order"},
		{What: "work for a packet", Theirs: "firewall, classifier, policer, encapsulation, hierarchical scheduler",
			Ours: "the same stages: 150 block and 4,096 allow rules, trTCM policer, QinQ and PPPoE to GTP-U, a " +
				"scheduler pipe for each subscriber"},
		{What: "loss", Theirs: "at most 0.001 %", Ours: "at most 0.001 %; the rate at no loss stands beside it"},
		{What: "unit of cost", Theirs: "cycles: 1.7 GHz divided by the rate of a core",
			Ours: "ticks of the time stamp counter, which does not follow the clock"},
	}
}
