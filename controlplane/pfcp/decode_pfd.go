// SPDX-License-Identifier: Apache-2.0

package pfcp

// PFD management (TS 29.244 §7.4.3).

// maxText bounds rules and names in text; 64 KiB of it (row P22) is no rule.
const maxText = 1024

// PFD Contents flags (TS 29.244 §8.2.39).
const (
	pfdFlow       = 1 << 0
	pfdURL        = 1 << 1
	pfdDomain     = 1 << 2
	pfdCustom     = 1 << 3
	pfdProtocol   = 1 << 4 // DNP
	pfdMoreFlow   = 1 << 5
	pfdMoreURL    = 1 << 6
	pfdMoreDomain = 1 << 7
)

// readPFD is TS 29.244 §8.2.39. Several flows or URLs in one PFD (AFD, AURL) mean "any of them", like several PFDs;
// they are read so where nothing else constrains the PFD.
func readPFD(v []byte) ([]PFD, *Error) {
	f, c := v[0], cursor{b: v[2:]}
	var p PFD
	for _, part := range []struct {
		flag byte
		at   *string
	}{{pfdFlow, &p.Flow}, {pfdURL, &p.URL}, {pfdDomain, &p.Domain}, {pfdCustom, &p.Custom}} {
		if f&part.flag == 0 {
			continue
		}
		*part.at = c.text()
		if !c.short && (*part.at == "" || len(*part.at) > maxText || !printable([]byte(*part.at), true)) {
			return nil, incorrect("PFD text")
		}
	}
	if f&(pfdProtocol|pfdMoreDomain) != 0 {
		return nil, unserved("PFD with domain name protocols or additional domain names")
	}
	list := []PFD{p}
	for _, more := range []struct{ flag, only byte }{{pfdMoreFlow, pfdFlow}, {pfdMoreURL, pfdURL}} {
		if f&more.flag == 0 {
			continue
		}
		if f&^(more.only|more.flag) != 0 || f&more.only == 0 {
			return nil, unserved("PFD with several flows or URLs and a constraint beside them")
		}
		texts, refusal := readTexts(c.take(int(c.uint16())))
		if refusal != nil {
			return nil, refusal
		}
		for _, text := range texts {
			if more.flag == pfdMoreFlow {
				list = append(list, PFD{Flow: text})
			} else {
				list = append(list, PFD{URL: text})
			}
		}
	}
	if refusal := c.end(iePFDContents, len(v)); refusal != nil {
		return nil, refusal
	}
	if p == (PFD{}) {
		return nil, incorrect("empty PFD")
	}
	return list, nil
}

func readTexts(v []byte) (texts []string, refusal *Error) {
	c := cursor{b: v}
	for len(c.b) > 0 {
		text := c.text()
		if c.short {
			return nil, badLength(iePFDContents, len(v))
		}
		if text == "" || len(text) > maxText || !printable([]byte(text), true) {
			return nil, incorrect("PFD text")
		}
		texts = append(texts, text)
	}
	return texts, nil
}

var pfdContext = newGroup([]field[ApplicationPFDs]{
	need(field[ApplicationPFDs]{ie: iePFDContents, many: true, read: func(v []byte, a *ApplicationPFDs) *Error {
		pfds, refusal := readPFD(v)
		a.PFDs = append(a.PFDs, pfds...)
		return refusal
	}, write: func(w *writer, a *ApplicationPFDs) {
		for i := range a.PFDs {
			w.pfd(&a.PFDs[i])
		}
	}}),
}, nil)

var applicationPFDs = newGroup([]field[ApplicationPFDs]{
	need(always(ieApplicationID, readName, (*writer).named,
		func(a *ApplicationPFDs) *string { return &a.Application })),
	{ie: iePFDContext, many: true, read: pfdContext.decode, write: func(w *writer, a *ApplicationPFDs) {
		if len(a.PFDs) > 0 {
			w.group(iePFDContext, func() { pfdContext.encode(w, a) })
		}
	}},
}, nil)

var pfdManagementRequest = newGroup([]field[PFDManagementRequest]{
	each(ieApplicationPFDs, applicationPFDs,
		func(m *PFDManagementRequest) *[]ApplicationPFDs { return &m.Applications }),
}, nil)

var pfdManagementResponse = newGroup([]field[PFDManagementResponse]{
	causeRow(func(m *PFDManagementResponse) *Cause { return &m.Cause }),
	offendingRow(func(m *PFDManagementResponse) *uint16 { return &m.Offending }),
}, nil)

// readName is a name that is no domain name: an application's, a predefined rule's.
func readName(v []byte) (string, *Error) {
	if len(v) > maxText || !printable(v, true) {
		return "", incorrect("not a name")
	}
	return string(v), nil
}
