package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// conn is one client: a connection on which calls follow each other.
type conn struct {
	net.Conn
	in  *bufio.Reader
	out []byte
	got []byte
}

func dial(ctx context.Context, address string) (*conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, in: bufio.NewReaderSize(c, 8<<10)}, nil
}

// call posts a body; the answer is valid until the next call.
func (c *conn) call(path string, body []byte) (status int, answer []byte, err error) {
	if err := c.send(path, body); err != nil {
		return 0, nil, err
	}
	return c.receive()
}

func (c *conn) send(path string, body []byte) error {
	c.out = append(c.out[:0], "POST "...)
	c.out = append(c.out, path...)
	c.out = append(c.out, " HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: "...)
	c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
	c.out = append(c.out, "\r\n\r\n"...)
	c.out = append(c.out, body...)
	_, err := c.Write(c.out)
	return err
}

var (
	errAnswer     = errors.New("not an HTTP answer with a length")
	lengthHeader  = []byte("Content-Length: ")
	versionPrefix = []byte("HTTP/1.1 ")
)

// receive reads one answer; every answer measured here has a Content-Length.
func (c *conn) receive() (status int, answer []byte, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	if !bytes.HasPrefix(line, versionPrefix) || len(line) < len(versionPrefix)+3 {
		return 0, nil, errAnswer
	}
	if status, err = strconv.Atoi(string(line[len(versionPrefix) : len(versionPrefix)+3])); err != nil {
		return 0, nil, errAnswer
	}
	length, err := c.length()
	if err != nil {
		return 0, nil, err
	}
	c.got = append(c.got[:0], make([]byte, length)...)
	_, err = io.ReadFull(c.in, c.got)
	return status, c.got, err
}

// length reads the headers.
func (c *conn) length() (int, error) {
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) == 0 && length >= 0:
			return length, nil
		case len(line) == 0:
			return 0, errAnswer
		case bytes.HasPrefix(line, lengthHeader):
			if length, err = strconv.Atoi(string(line[len(lengthHeader):])); err != nil {
				return 0, errAnswer
			}
		}
	}
}

// expect turns an answer of another status into an error.
func expect(status, want int, answer []byte) error {
	if status != want {
		return fmt.Errorf("answered %d: %s", status, answer)
	}
	return nil
}
