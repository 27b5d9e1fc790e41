// Package image writes a container image of static programs as a tar file, without a
// container engine: for tests, and for clusters whose nodes get their images by file.
//
// It is not for images with a base, a shell or a package manager, and it talks to no
// registry. Start with [Write]; the command mkimage next to this package shows all of it.
//
// The file is an OCI image layout (image-spec, image-layout.md) of one manifest with one
// uncompressed layer. The manifest has the annotation "io.containerd.image.name", by
// which `ctr images import` names it, and a manifest.json beside the layout is what
// `docker load` and `podman load` of any age read. All times in it are zero and all owners
// root, so that the same files give the same bytes, and the same digest.
package image
