// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
	"isthmus/lab/smf"
)

// willing is a data plane that takes everything.
type willing struct{}

func (willing) Commit(context.Context, []dp.Change) ([]api.Usage, error) { return nil, nil }

// crowded is how many sessions BenchmarkDisturbed has.
var crowded = 300000

// crowd has n sessions of smf1 that use the application "web" and belong to an FQ-CSID, and the server in front of
// them.
func crowd(b *testing.B, n int) (p *Manager, up netip.AddrPort, owner *smf.Association) {
	b.Helper()
	p, err := Open("", testSettings(), nil)
	testkit.Must(b, err)
	p.Attach(willing{})
	socket := func(at string, port uint16) config.Socket {
		return config.Socket{AddrPort: netip.AddrPortFrom(netip.MustParseAddr(at), port)}
	}
	section := config.Default[config.PFCP]()
	section.Listen, section.Heartbeat.Interval = []config.Socket{socket("127.0.0.1", 0)}, 0
	section.Peers = []config.PFCPPeer{{NodeID: "smf1", Address: socket("127.0.0.2", pfcp.Port)},
		{NodeID: "smf2", Address: socket("127.0.0.3", pfcp.Port)}}
	cfg := n4.ConfigOf(section)
	cfg.Features = n4.Features(n4.Capabilities{UserPlane: true, PDN: true, Applications: true})
	server, err := n4.New(cfg, n4.Sessions{Requests: p, Groups: p, Store: p}, nil)
	testkit.Must(b, err)
	p.SetReporter(server)
	testkit.Run(b, p.Run)
	testkit.Run(b, server.Run)
	up = server.Listening()[0]
	owner = client(b, "smf1", "127.0.0.2", up)
	setWeb(b, owner, 1)
	var all sync.WaitGroup
	room := make(chan struct{}, 1024)
	for i := range n {
		all.Add(1)
		room <- struct{}{}
		req := request(uint32(i+1), netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}).String())
		req.PDR[1].PDI.Application, req.FQCSID = "web", [][]byte{{1, 2, 3}}
		p.Establish(smf1, req, func(r *pfcp.SessionEstablishmentResponse) {
			if r.Cause != pfcp.CauseAccepted {
				b.Errorf("%+v", r)
			}
			<-room
			all.Done()
		})
	}
	all.Wait()
	return p, up, owner
}

func client(b *testing.B, node, from string, up netip.AddrPort) *smf.Association {
	b.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(from)})
	testkit.Must(b, err)
	c := smf.New(smf.Options{Node: pfcp.NodeID{FQDN: node}, Conn: conn, T1: time.Second, N1: 1000})
	b.Cleanup(c.Close)
	a, err := c.Associate(context.Background(), up)
	testkit.Must(b, err)
	return a
}

func setWeb(b *testing.B, a *smf.Association, flows int) {
	web := pfcp.ApplicationPFDs{Application: "web"}
	for i := range flows {
		web.PFDs = append(web.PFDs, pfcp.PFD{Flow: fmt.Sprintf("permit out 6 from any %d to assigned", 80+i)})
	}
	if err := a.SetPFDs(context.Background(), web); err != nil {
		b.Errorf("PFDs: %v", err)
	}
}

// BenchmarkDisturbed measures how long another peer's heartbeats and modifications wait, over UDP. Meanwhile a peer
// with 300,000 sessions sends ten PFD Management Requests that concern all of them. It fails, another peer inherits its
// sessions, and ten session set deletions follow. Run with -benchtime 1x.
func BenchmarkDisturbed(b *testing.B) {
	n, times := crowded, 10
	p, up, hostile := crowd(b, n)
	other := client(b, "smf2", "127.0.0.3", up)
	s, err := other.Establish(context.Background(), request(uint32(n+1), "10.46.0.1"), nil)
	testkit.Must(b, err)
	for _, what := range []string{"nothing", "pfds", "adoption", "deletion"} {
		b.Run(what, func(b *testing.B) {
			done := make(chan struct{})
			b.ResetTimer()
			go func() {
				defer close(done)
				var all sync.WaitGroup
				for i := range times {
					all.Add(1)
					go func() {
						defer all.Done()
						switch what {
						case "nothing":
							waitPass(3 * time.Second)
						case "pfds":
							setWeb(b, hostile, 2+i)
						case "adoption":
							for p.Adopt("smf1", "smf3"); p.adopting(); {
								waitPass(time.Millisecond)
							}
						case "deletion":
							over := make(chan int, 1)
							p.Release("smf3", [][]byte{{1, 2, 3}}, func(n int) { over <- n })
							if i == 0 {
								<-over
							}
						}
					}()
					if i == 0 {
						waitPass(time.Millisecond)
					}
				}
				all.Wait()
			}()
			var took []time.Duration
			for more := true; more; {
				select {
				case <-done:
					more = false
				default:
				}
				for _, ask := range []func() error{
					func() error { return other.Beat(context.Background()) },
					func() error {
						_, err := s.Modify(context.Background(),
							&pfcp.SessionModificationRequest{UpdatePDR: []pfcp.UpdatePDR{{ID: 1,
								Precedence: ptr(uint32(len(took)))}}})
						return err
					},
				} {
					began := time.Now()
					testkit.Must(b, ask())
					took = append(took, time.Since(began))
				}
				waitPass(time.Millisecond)
			}
			b.StopTimer()
			slices.Sort(took)
			ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
			b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
			b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
			b.ReportMetric(ms(took[len(took)-1]), "max-ms")
			b.ReportMetric(float64(len(took)), "answers")
		})
	}
}

// waitPass lets time pass between two looks at how long answers take; there is no event to wait for.
func waitPass(d time.Duration) { time.Sleep(d) }
