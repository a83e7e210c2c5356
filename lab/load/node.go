// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"time"

	"isthmus/controlplane/pfcp"
)

// associate sets the association up before anything else runs.
func (r *run) associate(ctx context.Context) error {
	request := &pfcp.AssociationSetupRequest{Node: r.opt.Node, Recovery: r.recovery}
	b, err := pfcp.Encode(pfcp.Header{Type: request.MessageType()}, request)
	if err != nil {
		return err
	}
	in := make([]byte, 65536)
	for range r.opt.N1 + 1 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.conn.Write(b)
		r.conn.SetReadDeadline(time.Now().Add(r.opt.T1))
		for {
			n, err := r.conn.Read(in)
			if err != nil {
				waitTurn() // refused at once, or T1 is over
				break
			}
			_, m, err := pfcp.Decode(in[:n])
			answer, ok := m.(*pfcp.AssociationSetupResponse)
			if err != nil || !ok {
				continue // a heartbeat of the peer: it will be repeated
			}
			if answer.Cause != pfcp.CauseAccepted {
				return fmt.Errorf("%s refused the association: cause %d; are our address and Node ID in its "+
					"pfcp.peers? "+
					"Its `isthmus show n4` says why", r.opt.Peer, answer.Cause)
			}
			if answer.Features&pfcp.UPFtup == 0 {
				return fmt.Errorf("%s does not allocate F-TEIDs (no FTUP among its features)", r.opt.Peer)
			}
			return r.conn.SetReadDeadline(time.Time{})
		}
	}
	return fmt.Errorf("%s does not answer the Association Setup Request", r.opt.Peer)
}

// release ends the association; by then nothing waits, and an answer to it is stray.
func (r *run) release() {
	request := &pfcp.AssociationReleaseRequest{Node: r.opt.Node}
	if b, err := pfcp.Encode(pfcp.Header{Type: request.MessageType(), Sequence: 0}, request); err == nil {
		r.conn.Write(b)
	}
}

// serve answers what the user plane asks meanwhile.
func (r *run) serve(b []byte) {
	h, m, err := pfcp.Decode(b)
	if err != nil {
		r.wrong("a request that cannot be read: " + err.Error())
		return
	}
	var reply pfcp.Message
	answer := pfcp.Header{Sequence: h.Sequence, HasSEID: h.HasSEID}
	switch m.(type) {
	case *pfcp.HeartbeatRequest:
		reply = &pfcp.HeartbeatResponse{Recovery: r.recovery}
	case *pfcp.SessionReportRequest:
		reply = &pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted}
		r.mu.Lock()
		r.result.Reports++
		if slot := h.SEID - r.cp(0); slot < uint64(len(r.slots)) {
			answer.SEID = r.slots[slot].up
		}
		r.mu.Unlock()
	case *pfcp.NodeReportRequest:
		reply = &pfcp.NodeReportResponse{Node: r.opt.Node, Cause: pfcp.CauseAccepted}
	default:
		r.wrong("an unexpected request")
		return
	}
	answer.Type = reply.MessageType()
	if out, err := pfcp.Encode(answer, reply); err == nil {
		r.conn.Write(out)
	}
}
