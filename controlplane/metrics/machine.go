// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"

	"isthmus/api"
)

var byProcess = []string{"process"}

// Process has the kernel's figures of one of our processes.
type Process struct {
	Name     string
	Resident uint64  // bytes, without huge pages
	CPU      float64 // seconds
	Files    int     // open
}

// ReadProcess asks the kernel; unavailable figures are 0.
func ReadProcess(name string, pid int) Process {
	p := Process{Name: name}
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return p
	}
	if stat, err := proc.Stat(); err == nil {
		p.Resident, p.CPU = uint64(stat.ResidentMemory()), stat.CPUTime()
	}
	p.Files, _ = proc.FileDescriptorsLen() // unavailable for another user's process
	return p
}

var processes = []family[Process]{
	gauge("process_resident_bytes", "Memory of the process, without huge pages.", byProcess,
		func(p *Process) uint64 { return p.Resident }),
	counter("process_busy_seconds_total", "CPU time of the process.", byProcess,
		func(p *Process) float64 { return p.CPU }),
	gauge("process_open_files", "Open files and sockets of the process.", byProcess,
		func(p *Process) int { return p.Files }),
}

var storeDesc = prometheus.NewDesc("isthmus_store_bytes", "Size of the sessions' store.", nil, nil)

// SchedulerClass is the queues of a traffic class at a port, all subports.
type SchedulerClass struct {
	Port, Class string
	api.SchedulerRow
}

var byQueue = []string{"port", "traffic_class"}

var schedulers = []family[SchedulerClass]{
	gauge("scheduler_queued_packets", "Packets that wait in the scheduler.", byQueue,
		func(q *SchedulerClass) uint32 { return q.Queued }),
	counter("scheduler_packets_total", "Packets that left the scheduler.", byQueue,
		func(q *SchedulerClass) uint64 { return q.Packets }),
	counter("scheduler_bytes_total", "Bytes of them.", byQueue,
		func(q *SchedulerClass) uint64 { return q.Bytes }),
	counter("scheduler_dropped_packets_total", "Packets that the scheduler's queues had no room for.", byQueue,
		func(q *SchedulerClass) uint64 { return q.DroppedPackets }),
}

// ByClass adds up the subports' rows, in the order of port and class.
func ByClass(rows []api.SchedulerRow) []SchedulerClass {
	var list []SchedulerClass
	for i := range rows {
		r := &rows[i]
		port := api.CString(r.Port[:])
		at := slices.IndexFunc(list, func(q SchedulerClass) bool {
			return q.Port == port && q.TrafficClass == r.TrafficClass
		})
		if at < 0 {
			list = append(list, SchedulerClass{port, text(r.TrafficClass),
				api.SchedulerRow{TrafficClass: r.TrafficClass}})
			at = len(list) - 1
		}
		q := &list[at]
		q.Queued, q.Packets, q.Bytes = q.Queued+r.Queued, q.Packets+r.Packets, q.Bytes+r.Bytes
		q.DroppedPackets += r.DroppedPackets
	}
	slices.SortFunc(list, func(a, b SchedulerClass) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.TrafficClass, b.TrafficClass))
	})
	return list
}
