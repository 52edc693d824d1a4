package certs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"
)

// Files are where somebody else keeps certificates: cert-manager in a mounted Secret, for example.
type Files struct {
	// Certificate, Key and Authorities are paths of PEM files. The last may be empty: then neighbours are
	// trusted by the system's authorities, and there is no bundle to publish.
	Certificate, Key, Authorities string
}

// content is what the files hold.
type content struct{ certificate, key, authorities []byte }

func (f Files) read() (content, error) {
	var c content
	for _, one := range []struct {
		path string
		into *[]byte
	}{{f.Certificate, &c.certificate}, {f.Key, &c.key}, {f.Authorities, &c.authorities}} {
		if one.path == "" {
			continue
		}
		raw, err := os.ReadFile(one.path)
		if err != nil {
			return content{}, fmt.Errorf("certificates: %w", err)
		}
		*one.into = raw
	}
	return c, nil
}

// Load reads the files into h.
func (f Files) Load(h *Holder) error {
	_, err := f.load(h, content{})
	return err
}

// load takes what the files hold into use, unless it is known already, and returns it. While one
// of them has been replaced and another not yet, nothing changes.
func (f Files) load(h *Holder, known content) (content, error) {
	c, err := f.read()
	if err != nil || bytes.Equal(c.certificate, known.certificate) && bytes.Equal(c.key, known.key) && bytes.Equal(c.authorities, known.authorities) {
		return known, err
	}
	m, err := newMaterial(c.certificate, c.key, c.authorities)
	if err != nil {
		return known, err
	}
	h.Use(m)
	return c, nil
}

// Follow reads the files again every period, until ctx ends. What goes wrong is told to complain; what is in
// use stays in use then.
func (f Files) Follow(ctx context.Context, h *Holder, period time.Duration, complain func(error)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	var known content
	for {
		var err error
		if known, err = f.load(h, known); err != nil {
			complain(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
