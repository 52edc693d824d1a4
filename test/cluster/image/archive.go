package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// Image is one layer and how it is run.
type Image struct {
	// Name is the whole reference, registry and tag included.
	Name string
	// Entrypoint is the command; Env its environment, as NAME=VALUE.
	Entrypoint, Env []string
	// Layer is the files.
	Layer Layer
}

// user is whom every image runs as: nobody in particular, and not root.
const user = "65532:65532"

// blob is a part of an archive, named by its digest.
type blob struct {
	digest string
	bytes  []byte
}

func blobOf(b []byte) blob {
	sum := sha256.Sum256(b)
	return blob{digest: "sha256:" + hex.EncodeToString(sum[:]), bytes: b}
}

// descriptor is how one part of an image names another.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func (b blob) as(mediaType string) descriptor {
	return descriptor{MediaType: mediaType, Digest: b.digest, Size: len(b.bytes)}
}

type configuration struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		User       string   `json:"User"`
		Env        []string `json:"Env"`
		Entrypoint []string `json:"Entrypoint"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

// Save writes the image's archive to a file, which appears when it is complete.
func (i Image) Save(file string) (err error) {
	unfinished := file + ".unfinished"
	out, err := os.Create(unfinished)
	if err != nil {
		return fmt.Errorf("image %s: %w", i.Name, err)
	}
	err = errors.Join(i.Write(out), out.Close())
	if err != nil {
		return errors.Join(err, os.Remove(unfinished))
	}
	return os.Rename(unfinished, filepath.Clean(file))
}

// Write writes the image's archive.
func (i Image) Write(w io.Writer) error {
	layer, diffID, err := i.layer()
	if err != nil {
		return fmt.Errorf("image %s: %w", i.Name, err)
	}
	var c configuration
	c.Architecture, c.OS = runtime.GOARCH, "linux"
	c.Config.User, c.Config.Env, c.Config.Entrypoint = user, i.Env, i.Entrypoint
	c.RootFS.Type, c.RootFS.DiffIDs = "layers", []string{diffID}
	config, err := encode(c)
	if err != nil {
		return err
	}
	main, err := encode(manifest{
		SchemaVersion: 2, MediaType: typeManifest, Config: config.as(typeConfig), Layers: []descriptor{layer.as(typeLayer)},
	})
	if err != nil {
		return err
	}
	named := main.as(typeManifest)
	named.Annotations = map[string]string{
		"io.containerd.image.name":          i.Name,
		"org.opencontainers.image.ref.name": i.Name[strings.LastIndex(i.Name, ":")+1:],
	}
	table, err := encode(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{named}})
	if err != nil {
		return err
	}
	return writeArchive(w, table.bytes, layer, config, main)
}

// layer is the compressed layer, and the digest of what it is when uncompressed.
func (i Image) layer() (blob, string, error) {
	var plain, packed bytes.Buffer
	if err := i.Layer.write(&plain); err != nil {
		return blob{}, "", err
	}
	// The archive is read once, on the same machine.
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return blob{}, "", err
	}
	if _, err := zip.Write(plain.Bytes()); err != nil {
		return blob{}, "", err
	}
	if err := zip.Close(); err != nil {
		return blob{}, "", err
	}
	return blobOf(packed.Bytes()), blobOf(plain.Bytes()).digest, nil
}

func encode(part any) (blob, error) {
	text, err := json.Marshal(part)
	return blobOf(text), err
}

func writeArchive(w io.Writer, table []byte, blobs ...blob) error {
	out := tar.NewWriter(w)
	put := func(name string, text []byte) error {
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		_, err := out.Write(text)
		return err
	}
	if err := errors.Join(put("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)), put("index.json", table)); err != nil {
		return err
	}
	for _, b := range blobs {
		if err := put("blobs/sha256/"+strings.TrimPrefix(b.digest, "sha256:"), b.bytes); err != nil {
			return err
		}
	}
	return out.Close()
}
