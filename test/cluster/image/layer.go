package image

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Layer is the files of an image, by their absolute paths in it. The zero value is empty.
type Layer struct {
	entries map[string]entry
}

// entry is a file with its bytes at source or in text, or a link.
type entry struct {
	mode   int64
	source string
	text   []byte
	link   string
}

func (l *Layer) put(to string, e entry) {
	if l.entries == nil {
		l.entries = map[string]entry{}
	}
	l.entries[strings.TrimPrefix(path.Clean(to), "/")] = e
}

// Text adds a file with the given contents.
func (l *Layer) Text(to, text string) { l.put(to, entry{mode: 0o644, text: []byte(text)}) }

// Link adds a symbolic link.
func (l *Layer) Link(at, to string) { l.put(at, entry{mode: 0o777, link: to}) }

// Program adds an executable from the machine.
func (l *Layer) Program(from, to string) { l.put(to, entry{mode: 0o755, source: from}) }

// Same adds a file of the machine, or what a link leads to, under its own path.
func (l *Layer) Same(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("layer: %w", err)
	}
	l.put(file, entry{mode: modeOf(info), source: file})
	return nil
}

// Tree adds a folder of the machine. skip says which files and folders below it to leave out, by
// their path relative to it.
func (l *Layer) Tree(from, to string, skip func(relative string) bool) error {
	err := filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		if relative != "." && skip(relative) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return l.add(file, path.Join(to, filepath.ToSlash(relative)), d)
	})
	if err != nil {
		return fmt.Errorf("layer: %w", err)
	}
	return nil
}

func (l *Layer) add(file, to string, d fs.DirEntry) error {
	switch {
	case d.Type()&fs.ModeSymlink != 0:
		link, err := os.Readlink(file)
		if err != nil {
			return err
		}
		l.put(to, entry{mode: 0o777, link: link})
	case d.Type().IsRegular():
		info, err := d.Info()
		if err != nil {
			return err
		}
		l.put(to, entry{mode: modeOf(info), source: file})
	}
	return nil
}

// modeOf keeps of a file's mode only whether it may be run.
func modeOf(info fs.FileInfo) int64 {
	if info.Mode()&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

// write writes the layer as a tar, its folders before what is in them, all owned by root and without
// a time.
func (l *Layer) write(w io.Writer) error {
	out := tar.NewWriter(w)
	folders := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(l.entries)) {
		if err := makeFolders(out, path.Dir(name), folders); err != nil {
			return err
		}
		if err := l.entries[name].write(out, name); err != nil {
			return fmt.Errorf("layer: %s: %w", name, err)
		}
	}
	return out.Close()
}

func makeFolders(out *tar.Writer, folder string, made map[string]bool) error {
	if folder == "." || made[folder] {
		return nil
	}
	if err := makeFolders(out, path.Dir(folder), made); err != nil {
		return err
	}
	made[folder] = true
	return out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755})
}

func (e entry) write(out *tar.Writer, name string) error {
	if e.link != "" {
		return out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: e.link, Mode: e.mode})
	}
	text := e.text
	if e.source != "" {
		var err error
		if text, err = os.ReadFile(e.source); err != nil {
			return err
		}
	}
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: e.mode, Size: int64(len(text))}); err != nil {
		return err
	}
	_, err := out.Write(text)
	return err
}
