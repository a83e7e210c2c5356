// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// journal is the file. A frame's sum shows whether it is complete. A process that dies while it writes one has not
// answered its requests.
type journal struct {
	f         *os.File
	path      string
	size      int64
	places    places        // of what memory need not have (Kind.inMemory)
	kept      uint64        // what that takes
	unwritten map[id][]byte // their state in a failed frame
	torn      bool          // bytes of a frame that failed lie behind size
	lack      bool          // a frame failed: its contents are in memory alone, until the file is compacted
	out       []byte
	next      *compaction

	least, again uint64    // see outdated
	retry        time.Time // the same, when lack is set
}

const (
	magic      = "isthmus3"
	headSize   = 64
	headSummed = 56
	frameHead  = 12
	// Overhead is what a record takes beside its data.
	Overhead  = 13
	removed   = 0xffffffff // in place of a length
	mostFrame = 1 << 30
)

var (
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
	errEncoding = errors.New("the file does not follow its format")
	errVersion  = errors.New("the file is of another version")
)

type head struct {
	recovery time.Time
	boot     string
}

func (h head) bytes() []byte {
	b := make([]byte, headSize)
	copy(b, magic)
	binary.LittleEndian.PutUint64(b[8:], uint64(h.recovery.Unix()))
	copy(b[16:headSummed], h.boot)
	binary.LittleEndian.PutUint32(b[headSummed:], crc32.Checksum(b[:headSummed], castagnoli))
	return b
}

// readHead returns the recovery time stamp of another version too: it is in the same place there.
func readHead(b []byte) (h head, err error) {
	if len(b) < headSize || crc32.Checksum(b[:headSummed], castagnoli) != binary.LittleEndian.Uint32(b[headSummed:]) {
		return h, fmt.Errorf("%w: its head", errEncoding)
	}
	h.recovery = time.Unix(int64(binary.LittleEndian.Uint64(b[8:])), 0)
	if string(b[:8]) != magic {
		return h, fmt.Errorf("%w: %q, not %q", errVersion, b[:8], magic)
	}
	boot := b[16:headSummed]
	for len(boot) > 0 && boot[len(boot)-1] == 0 {
		boot = boot[:len(boot)-1]
	}
	h.boot = string(boot)
	return h, nil
}

type id struct {
	kind   Kind
	number uint64
}

// place is where the data of a record is.
type place struct {
	at     int64
	length uint32
}

type places map[id]place

// mapped calls fn with the first bytes of a file.
func mapped(f *os.File, size int64, fn func(all []byte) error) error {
	all, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil { // no fault of the contents, see damaged
		return &fs.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	defer unix.Munmap(all)
	return fn(all)
}

// scan finds the last data of each record, and where the frames end.
func scan(f *os.File, size int64) (h head, found places, end int64, err error) {
	if size < headSize {
		return h, nil, 0, fmt.Errorf("%w: its head", errEncoding)
	}
	err = mapped(f, size, func(all []byte) error {
		if h, err = readHead(all); err == nil {
			found, end, err = findRecords(all, headSize)
		}
		return err
	})
	return h, found, end, err
}

// each gives the records in order.
func (p places) each(f *os.File, size int64, fn func(Record) error) error {
	list := make([]id, 0, len(p))
	for i := range p {
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b id) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.number, b.number))
	})
	return mapped(f, size, func(all []byte) error {
		for _, i := range list {
			at := p[i]
			end := at.at + int64(at.length)
			if err := fn(Record{i.kind, i.number, all[at.at:end:end]}); err != nil {
				return err
			}
		}
		return nil
	})
}

// findRecords goes through frames, from an offset on. With an error it returns what it found before.
func findRecords(all []byte, from int) (found places, end int64, err error) {
	found = places{}
	at := from
	for at < len(all) {
		records, err := readFrame(all[at:])
		if err == nil && records == nil {
			break
		}
		if err == nil {
			err = found.take(records, int64(at+frameHead))
		}
		if err != nil {
			return found, int64(at), fmt.Errorf("%w: the frame at %d", err, at)
		}
		at += frameHead + len(records)
	}
	return found, int64(at), nil
}

// readFrame returns the first frame's records. nil: a frame that was being written, if the file ends within it and its
// length is credible. A frame always has records.
func readFrame(b []byte) (records []byte, err error) {
	if len(b) < frameHead {
		return nil, nil
	}
	n := binary.LittleEndian.Uint32(b)
	if n == 0 || crc32.Checksum(b[:8], castagnoli) != binary.LittleEndian.Uint32(b[8:]) {
		return nil, fmt.Errorf("%w: the head", errEncoding)
	}
	if uint64(n) > uint64(len(b)-frameHead) {
		return nil, nil
	}
	records = b[frameHead : frameHead+int(n)]
	if crc32.Checksum(records, castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return nil, fmt.Errorf("%w: the sum", errEncoding)
	}
	return records, nil
}

func (p places) take(b []byte, at int64) error {
	for len(b) > 0 {
		if len(b) < Overhead {
			return errEncoding
		}
		i, length := id{Kind(b[0]), binary.LittleEndian.Uint64(b[1:])}, binary.LittleEndian.Uint32(b[9:])
		b, at = b[Overhead:], at+Overhead
		if length == removed {
			delete(p, i)
			continue
		}
		if uint64(length) > uint64(len(b)) {
			return errEncoding
		}
		p[i] = place{at, length}
		b, at = b[length:], at+int64(length)
	}
	return nil
}

func appendRecord(b []byte, r Record) []byte {
	b = binary.LittleEndian.AppendUint64(append(b, byte(r.Kind)), r.Number)
	if r.Data == nil {
		return binary.LittleEndian.AppendUint32(b, removed)
	}
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(r.Data))), r.Data...)
}

// seal finishes a frame that began with frameHead bytes of room.
func seal(b []byte) {
	binary.LittleEndian.PutUint32(b, uint32(len(b)-frameHead))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[frameHead:], castagnoli))
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[:8], castagnoli))
}

// write adds one frame. After a failure the file is compacted from memory as soon as possible: otherwise ended sessions
// would return at a restart and conflict with their addresses' new owners.
func (j *journal) write(records []Record) error {
	err := j.add(records)
	if err == nil {
		return nil
	}
	j.lack = true
	if j.next != nil {
		j.abandon()
	}
	for _, r := range records {
		if !r.Kind.inMemory() {
			if j.unwritten == nil {
				j.unwritten = map[id][]byte{}
			}
			j.unwritten[id{r.Kind, r.Number}] = slices.Clone(r.Data)
		}
	}
	return err
}

func (j *journal) add(records []Record) error {
	b := append(j.out[:0], make([]byte, frameHead)...)
	for _, r := range records {
		b = appendRecord(b, r)
	}
	if len(b) > mostFrame {
		return fmt.Errorf("a transaction of %d bytes", len(b))
	}
	seal(b)
	if j.out = b; cap(b) > 1<<20 {
		j.out = nil
	}
	if err := j.append(b); err != nil {
		return err
	}
	j.placed(records)
	if j.next != nil {
		if err := j.next.append(b); err != nil {
			j.abandon()
		} else {
			j.next.placed(records)
		}
	}
	return nil
}

// put notes where a record is, or that it is nowhere.
func (j *journal) put(i id, there bool, at place) {
	if old, was := j.places[i]; was {
		j.kept -= Overhead + uint64(old.length)
		delete(j.places, i)
	}
	if there {
		j.kept += Overhead + uint64(at.length)
		j.places[i] = at
	}
}

// placed notes where the records of the last frame are.
func (j *journal) placed(records []Record) {
	end := j.size
	for n := len(records) - 1; n >= 0; n-- {
		end -= int64(len(records[n].Data)) + Overhead
	}
	for _, r := range records {
		end += Overhead
		if i := (id{r.Kind, r.Number}); !r.Kind.inMemory() {
			delete(j.unwritten, i)
			j.put(i, r.Data != nil, place{end, uint32(len(r.Data))})
		}
		end += int64(len(r.Data))
	}
}

// append writes a whole frame at the end. A partial write, on a full disk, is undone: frames behind it could not be
// read.
func (j *journal) append(b []byte) error {
	if j.torn {
		if err := j.f.Truncate(j.size); err != nil {
			return err
		}
		j.torn = false
	}
	n, err := j.f.WriteAt(b, j.size)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		j.torn = j.f.Truncate(j.size) != nil
		return err
	}
	j.size += int64(len(b))
	return nil
}

func (j *journal) close() {
	j.abandon()
	j.f.Close()
}
