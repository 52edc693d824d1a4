package workload

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// mooncakeBlock is the number of prompt tokens that one hash id of the Mooncake form names.
const mooncakeBlock = 512

// ReadMooncake reads the JSONL form of the Mooncake traces: one object per line with
// timestamp (milliseconds), input_length, output_length and hash_ids, the chained hashes of
// the prompt's blocks of 512 tokens. Other fields are ignored.
//
// The form knows no sessions. A request continues the session whose latest prompt, in
// complete blocks, is the longest beginning of the new prompt, provided that its last block
// was first seen in that session; otherwise a system prompt that all sessions share would
// join strangers. Every other request opens a session of its own. Blocks that are shared
// with other sessions count as Fresh, for they may be cached anywhere.
//
// Limit is the most requests to read; 0 or less reads all. An error is an [InputError] or
// comes from the reader.
func ReadMooncake(r io.Reader, limit int) ([]Session, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLineBytes)
	all := newChains()
	for n := 0; (limit <= 0 || n < limit) && lines.Scan(); n++ {
		if err := all.add(n+1, lines.Bytes()); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &InputError{Line: all.lines + 1, Problem: fmt.Sprintf("longer than %d bytes", maxLineBytes)}
	} else if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	return all.collected.done()
}

// chains follows sessions through the hashes of their prompts.
type chains struct {
	collected *collector
	lines     int
	owner     map[int64]string // the session that showed a block first
	tail      map[int64]string // the session whose latest prompt's last complete block it is
	last      map[string]int64 // the inverse of tail
}

func newChains() *chains {
	return &chains{
		collected: newCollector(),
		owner:     make(map[int64]string),
		tail:      make(map[int64]string),
		last:      make(map[string]int64),
	}
}

func (c *chains) add(line int, text []byte) error {
	one, hashes, err := parseMooncake(line, text)
	if err != nil {
		return err
	}
	c.lines = line
	session, shared := c.continues(hashes)
	if session == "" {
		session = strconv.Itoa(len(c.collected.sessions))
	}
	one.session = session
	if err := c.collected.add(one, min(one.prompt, shared*mooncakeBlock)); err != nil {
		return &InputError{line, "timestamp", err.Error()}
	}
	for _, hash := range hashes {
		if _, seen := c.owner[hash]; !seen {
			c.owner[hash] = session
		}
	}
	c.move(session, hashes[:min(len(hashes), one.prompt/mooncakeBlock)])
	return nil
}

// continues returns the session that the prompt goes on with, and how many blocks it shares.
func (c *chains) continues(hashes []int64) (session string, blocks int) {
	for i := len(hashes) - 1; i >= 0; i-- {
		if at, ok := c.tail[hashes[i]]; ok && c.owner[hashes[i]] == at {
			return at, i + 1
		}
	}
	return "", 0
}

// move notes the complete blocks of the session's latest prompt.
func (c *chains) move(session string, complete []int64) {
	if old, ok := c.last[session]; ok {
		delete(c.tail, old)
		delete(c.last, session)
	}
	if len(complete) == 0 {
		return
	}
	end := complete[len(complete)-1]
	if before, taken := c.tail[end]; taken {
		delete(c.last, before)
	}
	c.tail[end], c.last[session] = session, end
}

// mooncakeLine is one line as it stands; a missing field is nil.
type mooncakeLine struct {
	Timestamp    *json.Number `json:"timestamp"`
	InputLength  *int64       `json:"input_length"`
	OutputLength *int64       `json:"output_length"`
	HashIDs      []int64      `json:"hash_ids"`
}

func parseMooncake(line int, text []byte) (request, []int64, error) {
	var raw mooncakeLine
	if err := json.Unmarshal(text, &raw); err != nil {
		return request{}, nil, jsonError(line, err)
	}
	arrival, problem := milliseconds(raw.Timestamp)
	if problem != "" {
		return request{}, nil, &InputError{line, "timestamp", problem}
	}
	if problem := tokens(raw.InputLength); problem != "" {
		return request{}, nil, &InputError{line, "input_length", problem}
	}
	if problem := tokens(raw.OutputLength); problem != "" {
		return request{}, nil, &InputError{line, "output_length", problem}
	}
	if raw.HashIDs == nil {
		return request{}, nil, &InputError{line, "hash_ids", "is missing"}
	}
	return request{arrival: arrival, prompt: int(*raw.InputLength), output: int(*raw.OutputLength)}, raw.HashIDs, nil
}

// milliseconds reads a time stamp, which some of the traces give with a fraction.
func milliseconds(n *json.Number) (arrival time.Duration, problem string) {
	if n == nil {
		return 0, "is missing"
	}
	v, err := n.Float64()
	if err != nil || !(v >= 0 && v <= maxArrivalMS) {
		return 0, fmt.Sprintf("%s is not in 0..%d", n, int64(maxArrivalMS))
	}
	return time.Duration(v * float64(time.Millisecond)), ""
}

func tokens(n *int64) (problem string) {
	switch {
	case n == nil:
		return "is missing"
	case *n < 1 || *n > maxTokens:
		return fmt.Sprintf("%d is not in 1..%d", *n, maxTokens)
	}
	return ""
}

func jsonError(line int, err error) error {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return &InputError{line, wrong.Field, fmt.Sprintf("a JSON %s where a %s belongs", wrong.Value, wrong.Type)}
	}
	return &InputError{Line: line, Problem: err.Error()}
}
