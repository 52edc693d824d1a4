package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unpack reads a tar into its files.
func unpack(t *testing.T, r io.Reader) (map[string]string, []string) {
	t.Helper()
	files, order := map[string]string{}, []string{}
	in := tar.NewReader(r)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files, order
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeSymlink {
			text = []byte("-> " + header.Linkname)
		}
		files[header.Name] = string(text)
		order = append(order, header.Name)
	}
}

func sample(t *testing.T) Image {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"keep/a.py": "a", "skip/b.py": "b", "keep/c.pyc": "c"} {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a.py", filepath.Join(folder, "keep", "link")); err != nil {
		t.Fatal(err)
	}
	i := Image{Name: "registry.test/app:1", Entrypoint: []string{"/app"}, Env: []string{"A=b"}}
	i.Layer.Text("/etc/passwd", "root")
	if err := i.Layer.Tree(folder, "/lib/tree", func(relative string) bool {
		return relative == "skip" || strings.HasSuffix(relative, ".pyc")
	}); err != nil {
		t.Fatal(err)
	}
	return i
}

// parse reads an archive as an engine does: from its index by digests to the layer.
func parse(t *testing.T, archive []byte) (configuration, map[string]string, []string) {
	t.Helper()
	files, _ := unpack(t, bytes.NewReader(archive))
	read := func(d descriptor, into any) {
		text := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if blobOf([]byte(text)).digest != d.Digest || len(text) != d.Size {
			t.Fatalf("%s is not what its descriptor says", d.Digest)
		}
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	var table index
	if err := json.Unmarshal([]byte(files["index.json"]), &table); err != nil {
		t.Fatal(err)
	}
	if name := table.Manifests[0].Annotations["io.containerd.image.name"]; name != "registry.test/app:1" {
		t.Errorf("the image is called %q", name)
	}
	var main manifest
	read(table.Manifests[0], &main)
	var config configuration
	read(main.Config, &config)
	zip, err := gzip.NewReader(strings.NewReader(files["blobs/sha256/"+strings.TrimPrefix(main.Layers[0].Digest, "sha256:")]))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	if got := blobOf(plain).digest; got != config.RootFS.DiffIDs[0] {
		t.Errorf("the layer's digest is %s, the configuration says %s", got, config.RootFS.DiffIDs[0])
	}
	layer, order := unpack(t, bytes.NewReader(plain))
	return config, layer, order
}

func TestArchiveLeadsFromItsIndexToItsFiles(t *testing.T) {
	var archive bytes.Buffer
	if err := sample(t).Write(&archive); err != nil {
		t.Fatal(err)
	}
	config, layer, order := parse(t, archive.Bytes())
	if config.Config.User != user || config.Config.Entrypoint[0] != "/app" || config.Config.Env[0] != "A=b" {
		t.Errorf("the image is run as %+v", config.Config)
	}
	for name, want := range map[string]string{
		"etc/passwd": "root", "lib/tree/keep/a.py": "a", "lib/tree/keep/link": "-> a.py", "lib/tree/keep/": "",
	} {
		if got, there := layer[name]; !there || got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if len(order) != 7 {
		t.Errorf("the layer has %q, and should have no skipped file", order)
	}
}

func TestEqualFilesMakeEqualArchives(t *testing.T) {
	var one, other bytes.Buffer
	if err := sample(t).Write(&one); err != nil {
		t.Fatal(err)
	}
	if err := sample(t).Write(&other); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one.Bytes(), other.Bytes()) {
		t.Error("two archives of equal files differ")
	}
}

func TestSaveLeavesNoHalfOfAnArchive(t *testing.T) {
	folder := t.TempDir()
	i := sample(t)
	i.Layer.Program(filepath.Join(folder, "absent"), "/app")
	if err := i.Save(filepath.Join(folder, "image.tar")); err == nil {
		t.Error("an image of a program that is not there was saved")
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
