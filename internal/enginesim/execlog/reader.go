package execlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Suffix is how the file names of engines' logs end; ReadDir reads those.
const Suffix = ".exec.jsonl"

// Read returns the records of an engine's log. A torn last line is skipped; any other line that is not a
// record is an error that names its number.
func Read(r io.Reader) ([]Record, error) { return readLines[Record](r) }

// ReadClient returns the records of a client's log, by the same rules as Read.
func ReadClient(r io.Reader) ([]ClientRecord, error) { return readLines[ClientRecord](r) }

// ReadFiles returns the records of all the named logs together; a directory stands for the files in it whose
// names end in Suffix, of which there must be one.
func ReadFiles(paths ...string) ([]Record, error) {
	var out []Record
	for _, path := range paths {
		files, err := expand(path)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			records, err := readFile(f, Read)
			if err != nil {
				return nil, err
			}
			out = append(out, records...)
		}
	}
	return out, nil
}

// ReadClientFiles returns the records of all the named client logs together.
func ReadClientFiles(paths ...string) ([]ClientRecord, error) {
	var out []ClientRecord
	for _, path := range paths {
		records, err := readFile(path, ReadClient)
		if err != nil {
			return nil, err
		}
		out = append(out, records...)
	}
	return out, nil
}

func expand(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("find execution log: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	files, err := filepath.Glob(filepath.Join(path, "*"+Suffix))
	if err != nil {
		return nil, fmt.Errorf("list execution logs: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file in %s ends in %s", path, Suffix)
	}
	slices.Sort(files)
	return files, nil
}

func readFile[T any](path string, read func(io.Reader) ([]T, error)) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open execution log: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	out, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

func readLines[T any](r io.Reader) ([]T, error) {
	in := bufio.NewReader(r)
	var out []T
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil // what is before the end of the file but after the last newline is torn
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if record, ok, err := parse[T](line); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		} else if ok {
			out = append(out, record)
		}
	}
}

// parse reads one line. Where a crash tore a line, the writer that came after it has ended it: what does not
// even reach its closing brace is skipped like a torn last line.
func parse[T any](line []byte) (record T, ok bool, err error) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[len(line)-1] != '}' {
		return record, false, nil
	}
	if err := json.Unmarshal(line, &record); err != nil {
		return record, false, fmt.Errorf("not a record: %w", err)
	}
	return record, true, nil
}
