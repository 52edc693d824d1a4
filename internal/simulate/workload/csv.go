package workload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// csvHeader is the first line of the CSV form. The order is fixed.
var csvHeader = []string{"arrival_ms", "session", "turn", "input_tokens", "output_tokens"}

// sessionID is the form of ids in the lease protocol.
var sessionID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// ReadCSV reads a trace whose first line is the header
// arrival_ms,session,turn,input_tokens,output_tokens. Each line is one request; the turns of
// a session count from 0 in the order of the lines and do not go back in time. Input tokens
// are the whole prompt. The form does not say which of them are repeated, so a session is
// taken to repeat all of its context, which a prompt that is shorter than the context is
// then part of. Limit is the most requests to read; 0 or less reads all. An error is
// an [InputError] or comes from the reader.
func ReadCSV(r io.Reader, limit int) ([]Session, error) {
	lines := csv.NewReader(r)
	lines.ReuseRecord = true
	lines.FieldsPerRecord = len(csvHeader)
	header, err := lines.Read()
	if err != nil {
		return nil, csvError(err)
	}
	if !slices.Equal(header, csvHeader) {
		return nil, &InputError{Line: 1, Problem: fmt.Sprintf("the header is %q, not %q",
			strings.Join(header, ","), strings.Join(csvHeader, ","))}
	}
	all := newCollector()
	for n := 0; limit <= 0 || n < limit; n++ {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, csvError(err)
		}
		line, _ := lines.FieldPos(0)
		if err := addCSV(all, csvLine{line, fields}); err != nil {
			return nil, err
		}
	}
	return all.done()
}

// csvLine is one record and where it is.
type csvLine struct {
	line   int
	fields []string
}

func addCSV(all *collector, l csvLine) error {
	var problem *InputError
	number := func(column int, low, high int64) int64 {
		v, err := l.number(column, low, high)
		if problem == nil {
			problem = err
		}
		return v
	}
	arrival := number(0, 0, maxArrivalMS)
	turn := number(2, 0, maxTokens)
	one := request{
		session: strings.Clone(l.fields[1]), // the record's memory is used again
		arrival: time.Duration(arrival) * time.Millisecond,
		prompt:  int(number(3, 1, maxTokens)),
		output:  int(number(4, 1, maxTokens)),
	}
	if problem != nil {
		return problem
	}
	if !sessionID.MatchString(one.session) {
		return &InputError{l.line, csvHeader[1], fmt.Sprintf("%q is not an id of at most 128 letters, digits, '.', '_' and '-'", one.session)}
	}
	if due := all.turns(one.session); turn != int64(due) {
		return &InputError{l.line, csvHeader[2], fmt.Sprintf("turn %d of session %s, where %d is due", turn, one.session, due)}
	}
	if err := all.add(one, all.context(one.session)); err != nil {
		return &InputError{l.line, csvHeader[0], err.Error()}
	}
	return nil
}

func (l csvLine) number(column int, low, high int64) (int64, *InputError) {
	text := l.fields[column]
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, &InputError{l.line, csvHeader[column], fmt.Sprintf("%q is not a whole number", text)}
	}
	if v < low || v > high {
		return 0, &InputError{l.line, csvHeader[column], fmt.Sprintf("%d is not in %d..%d", v, low, high)}
	}
	return v, nil
}

// csvError gives the decoder's own errors the form of all others.
func csvError(err error) error {
	if errors.Is(err, io.EOF) {
		return &InputError{Line: 1, Problem: "the file is empty, without even a header"}
	}
	if broken := (*csv.ParseError)(nil); errors.As(err, &broken) {
		return &InputError{Line: broken.Line, Problem: broken.Err.Error()}
	}
	return fmt.Errorf("reading: %w", err)
}
