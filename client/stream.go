package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

func isStream(header http.Header) bool {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// errUnfinished: a stream that ended without saying that it was complete.
var errUnfinished = errors.New("the stream ended before [DONE]")

// stream is what is known of a streamed reply so far. Each sequence of a batch reports its own
// counts, cumulatively, so that the latest of each index counts.
type stream struct {
	verdict verdict
	tokens  map[int]int64
	prompts map[int]int64
}

// readStream reads server-sent events to [DONE], which alone makes a stream complete. An error
// from each cuts the request.
func readStream(from io.Reader, each func([]byte) error) (verdict, error) {
	s := stream{verdict: verdict{outcome: Succeeded, status: http.StatusOK}, tokens: map[int]int64{}, prompts: map[int]int64{}}
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		data, isData := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:"))
		data = bytes.TrimPrefix(data, []byte(" "))
		switch {
		case isData && err == nil && string(data) == "[DONE]":
			return s.finished(), nil
		case isData && err == nil:
			if err := s.take(data, each); err != nil {
				return verdict{}, err
			}
		case errors.Is(err, io.EOF):
			return verdict{}, errUnfinished
		case err != nil:
			return verdict{}, err
		}
	}
}

func (s *stream) take(data []byte, each func([]byte) error) error {
	var event struct {
		engineReply
		Index int `json:"index"`
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return fmt.Errorf("read an event of the stream: %w", err)
	}
	s.verdict.body, s.verdict.outputTokens, s.verdict.promptTokens = data, 0, 0
	s.verdict = s.verdict.with(event.engineReply)
	if s.verdict.outputTokens > 0 {
		s.tokens[event.Index] = s.verdict.outputTokens
	}
	if s.verdict.promptTokens > 0 {
		s.prompts[event.Index] = s.verdict.promptTokens
	}
	if each == nil {
		return nil
	}
	if err := each(data); err != nil {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	return nil
}

func (s *stream) finished() verdict {
	s.verdict.outputTokens, s.verdict.promptTokens = sum(s.tokens), sum(s.prompts)
	return s.verdict
}

func sum(counts map[int]int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}
