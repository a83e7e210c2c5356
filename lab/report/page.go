// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	_ "embed" // the page's own file
	"html/template"
	"regexp"
	"strings"

	"isthmus/controlplane/sheet"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"head": sheet.Head, "class": cellClass,
}).Parse(pageSource))

// alarming are words in a cell that must not be passed over.
var alarming = regexp.MustCompile(`WRONG|PARTIAL|NOT MEASURED|^NO$|not found|tester-limited|` +
	`tester not shown|gave up|not confirmed|highest rate allowed`)

// cellClass is the class of the i-th cell of a row whose first `left` are text.
func cellClass(i, left int, cell string) string {
	switch {
	case i >= left && cell != "NO":
		return ""
	case alarming.MatchString(cell):
		return "l alarm-cell"
	case i < left:
		return "l"
	}
	return ""
}

// card is a headline figure.
type card struct {
	Title, Value, Unit string
	Lines              []string
	Mark               string // why it must not be taken at its face
}

type pageData struct {
	Report   *Report
	Partial  bool
	Why      []string // it is partial
	Alarms   []string // wrong packets
	Where    string
	When     string
	Cards    []card
	Sections []*section
	JSON     string
}

// HTML returns the page: one file that needs nothing else.
func (r *Report) HTML() ([]byte, error) {
	data, err := r.JSON()
	if err != nil {
		return nil, err
	}
	page := pageData{
		Report: r, Partial: r.Partial(), Why: r.whyPartial(), Alarms: r.alarms(), Where: r.where(),
		When: r.Started + ", " + duration(r.Seconds), Cards: r.cards(), Sections: r.sections(), JSON: string(data),
	}
	if r.Quick {
		page.When += ", quick run"
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, page); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (r *Report) where() string {
	var list []string
	for _, part := range []string{r.Machine.CPU, r.Machine.Hypervisor, r.Machine.Kernel} {
		if part != "" {
			list = append(list, part)
		}
	}
	return strings.Join(list, " · ")
}

// whyPartial lists in words what is missing.
func (r *Report) whyPartial() []string {
	var list []string
	if r.Interrupted {
		list = append(list, "The run was interrupted: what had been measured by then is here.")
	} else if !r.Complete && len(r.Missing) == 0 {
		list = append(list, "The run has not come to its end: what had been measured by then is here.")
	}
	for _, m := range r.Missing {
		list = append(list, m.Part+": "+m.Why)
	}
	for i := range r.Runs {
		if run := &r.Runs[i]; run.Incomplete != "" {
			list = append(list, run.name()+" is incomplete: "+run.Incomplete)
		}
	}
	return list
}

// alarms lists where packets were wrong: such a result is void.
func (r *Report) alarms() []string {
	var list []string
	for i := range r.Runs {
		if run := &r.Runs[i]; run.Wrong > 0 {
			list = append(list, run.name()+": "+count(run.Wrong)+" of "+count(run.Checked)+" packets were wrong. "+
				""+run.WrongFrame)
		}
	}
	for i := range r.Runs {
		if run := &r.Runs[i]; run.Duplicate > 0 {
			list = append(list, run.name()+": "+count(run.Duplicate)+" packets came twice.")
		}
	}
	for i := range r.Costs {
		if c := &r.Costs[i]; c.Wrong > 0 && c.Link == "synth" {
			list = append(list, c.Profile+" on synth ports: "+count(c.Wrong)+" of "+count(c.Checked)+" packets were "+
				"wrong.")
		}
	}
	return list
}

// cards are the headline figures: ours beside the paper's, the proof, the latency, the cost.
func (r *Report) cards() []card {
	var list []card
	checked, decoded, wrong := uint64(0), uint64(0), uint64(0)
	for i := range r.Runs {
		run := &r.Runs[i]
		checked, decoded, wrong = checked+run.Checked, decoded+run.Decoded, wrong+run.Wrong
		p := r.paper(run)
		if p == nil {
			continue
		}
		g := r.Headline(run)
		c := card{Title: run.Title, Value: notApplicable, Unit: "Mpps for each worker"}
		if run.Ratio != "" && run.Ratio != "1:1" {
			c.Title += " (" + run.Ratio + ")"
		}
		if mark := run.marks(g); mark != "good" {
			c.Mark = mark
		}
		if g != nil {
			c.Value = g.atLeast() + mpps(g.Mpps.Median/float64(max(run.Workers, 1)))
			c.Lines = append(c.Lines,
				gbps(float64(g.GbpsL2))+" Gb/s over "+run.Link+", loss "+lossText(g.LossRatio))
			if g.Mpps.Runs > 1 {
				c.Lines = append(c.Lines,
					"lowest to highest of "+whole(g.Mpps.Runs)+": "+g.Mpps.Extent(mpps))
			}
		}
		c.Lines = append(c.Lines, "paper: "+mpps(p.MppsPerCore)+" Mpps a physical core, with network card")
		if v := ratioTo(run, g, p); v > 0 {
			c.Lines = append(c.Lines, "ratio "+times(float64(v))+", with the differences below")
		}
		list = append(list, c)
	}
	list = append(list, r.latencyCards()...)
	list = append(list, r.costCards()...)
	if checked > 0 {
		c := card{Title: "Packets proved", Value: count(wrong), Unit: "wrong"}
		c.Lines = []string{"of " + count(checked) + " compared", count(decoded) +
			" of them decoded in full, by code that the gateway does not share"}
		if wrong > 0 {
			c.Mark = "WRONG PACKETS"
		}
		list = append(list, c)
	}
	return list
}

// latencyCards takes the middle load of the first run that has one.
func (r *Report) latencyCards() []card {
	for i := range r.Runs {
		run := &r.Runs[i]
		if len(run.Latency) == 0 {
			continue
		}
		l := run.Latency[len(run.Latency)/2]
		return []card{{
			Title: "Latency at " + fixed(l.Percent, 0) + " % load", Value: micro(l.Latency.P99),
			Unit: "µs, p99, one way",
			Lines: []string{
				run.name() + ", " + mpps(l.Mpps) + " Mpps", "p50 " + micro(l.Latency.P50) + " µs, p99.9 " +
					micro(l.Latency.P999) + " µs",
			},
		}}
	}
	return nil
}

func (r *Report) costCards() []card {
	for i := range r.Costs {
		c := &r.Costs[i]
		if !c.Both.Ticks.Has() || c.Link != "synth" {
			continue
		}
		return []card{{
			Title: "Cost without a link", Value: fixed(c.Both.Ticks.Median, 0), Unit: "ticks a packet",
			Lines: []string{
				c.Profile + ", synth ports, one worker", "uplink " +
					c.Uplink.Ticks.Text(ticks) + ", downlink " + c.Downlink.Ticks.Text(ticks),
				"of it the ports: " + c.Both.Floor.Text(ticks),
			},
		}}
	}
	return nil
}
