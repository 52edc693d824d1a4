package server

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// handshakeFailed begins what net/http says of every connection by which no TLS comes about.
const handshakeFailed = "http: TLS handshake error"

// Complaints is a log for an http.Server. What it says goes on as a warning, panics among it, but for
// failed handshakes: any stranger makes as many of those as it likes, and a log is not theirs to fill.
func Complaints(to *slog.Logger) *log.Logger { return log.New(complaints{to}, "", 0) }

type complaints struct{ to *slog.Logger }

// Write takes one line.
func (c complaints) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.HasPrefix(line, []byte(handshakeFailed)) {
		level = slog.LevelDebug
	}
	c.to.Log(context.Background(), level, string(bytes.TrimRight(line, "\n")))
	return len(line), nil
}
