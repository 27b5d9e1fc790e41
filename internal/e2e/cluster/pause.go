package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/cnikit/cnikit/examples/bridge-vxlan/deploy/image"
)

// images are the files that every node imports: the pause image first.
func (c *Cluster) images() ([]string, error) {
	file := filepath.Join(c.home.dir, "pause.tar")
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("make pause image: %w", err)
	}
	defer func() { _ = f.Close() }() // the second time is harmless
	err = image.Write(f, image.Image{
		Ref: PauseImage, Entrypoint: []string{"/pause"},
		Files: []image.File{{Path: "/pause", Mode: 0o755, From: c.options.Binaries.Path("pause")}},
	})
	if err != nil {
		return nil, err
	}
	return append([]string{file}, c.options.Images...), f.Close()
}
