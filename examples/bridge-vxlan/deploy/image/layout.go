package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"strings"
)

// The media types of the OCI image specification, version 1.
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

var errChanged = errors.New("a file changed while it was read; try again")

// descriptor names a blob, see descriptor.md.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"` // bytes
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// list is an index or a manifest.
type list struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        *descriptor  `json:"config,omitempty"`
	Layers        []descriptor `json:"layers,omitempty"`
	Manifests     []descriptor `json:"manifests,omitempty"`
}

// config is what a container is made from, see config.md.
type config struct {
	Created string `json:"created"`
	platform
	Config process `json:"config"`
	RootFS rootFS  `json:"rootfs"`
}

type process struct {
	Entrypoint []string
	Env        []string `json:",omitempty"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// saved is an entry of manifest.json, by which Docker finds its way in the layout.
type saved struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// writeLayout writes the layer last, so that a reader knows by then what it is for.
func (i Image) writeLayout(tw *tar.Writer, content layer) error {
	blob, err := measure(content)
	if err != nil {
		return err
	}
	configJSON := encode(i.config(blob))
	conf := describe(configType, configJSON)
	manifestJSON := encode(list{SchemaVersion: 2, MediaType: manifestType, Config: &conf, Layers: []descriptor{blob}})
	manifest := describe(manifestType, manifestJSON)
	for _, f := range []struct {
		name    string
		content []byte
	}{
		{"oci-layout", encode(map[string]string{"imageLayoutVersion": "1.0.0"})},
		{"index.json", encode(i.index(manifest))},
		{"manifest.json", encode([]saved{{Config: conf.path(), RepoTags: []string{i.Ref}, Layers: []string{blob.path()}}})},
		{manifest.path(), manifestJSON},
		{conf.path(), configJSON},
	} {
		if err := writeFile(tw, f.name, f.content); err != nil {
			return err
		}
	}
	if err := writeBlob(tw, blob, content); err != nil {
		return err
	}
	return tw.Close()
}

func (i Image) index(manifest descriptor) list {
	manifest.Platform = i.platform()
	manifest.Annotations = map[string]string{
		"io.containerd.image.name":          i.Ref,
		"org.opencontainers.image.ref.name": i.Ref[strings.LastIndexByte(i.Ref, ':')+1:],
	}
	return list{SchemaVersion: 2, MediaType: indexType, Manifests: []descriptor{manifest}}
}

func (i Image) config(blob descriptor) config {
	return config{
		Created: "1970-01-01T00:00:00Z", platform: *i.platform(),
		Config: process{Entrypoint: i.Entrypoint, Env: i.Env},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{blob.Digest}}, // uncompressed, so the same
	}
}

func (i Image) platform() *platform { return &platform{Architecture: i.Architecture, OS: "linux"} }

// path is where a blob is in the layout.
func (d descriptor) path() string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }

func describe(mediaType string, content []byte) descriptor {
	sum := sha256.New()
	sum.Write(content)
	return descriptor{MediaType: mediaType, Digest: digest(sum), Size: int64(len(content))}
}

func digest(sum hash.Hash) string { return "sha256:" + hex.EncodeToString(sum.Sum(nil)) }

// encode is for values that have an encoding.
func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}

func writeFile(tw *tar.Writer, name string, content []byte) error {
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := tw.Write(content)
	return err
}

// measure finds digest and size of the layer by writing it to nowhere.
func measure(content layer) (descriptor, error) {
	sum, size := sha256.New(), counter(0)
	if err := content.write(io.MultiWriter(sum, &size)); err != nil {
		return descriptor{}, err
	}
	return descriptor{MediaType: layerType, Digest: digest(sum), Size: int64(size)}, nil
}

// writeBlob writes the layer that was measured.
func writeBlob(tw *tar.Writer, blob descriptor, content layer) error {
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: blob.path(), Mode: 0o644, Size: blob.Size}); err != nil {
		return err
	}
	sum := sha256.New()
	if err := content.write(io.MultiWriter(tw, sum)); err != nil {
		return err
	}
	if digest(sum) != blob.Digest {
		return errChanged
	}
	return nil
}

// counter counts the bytes written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
