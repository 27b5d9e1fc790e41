package image_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/cnikit/cnikit/examples/bridge-vxlan/deploy/image"
)

func ExampleWrite() {
	var out bytes.Buffer
	err := image.Write(&out, image.Image{
		Ref:        "localhost/hello:1",
		Files:      []image.File{{Path: "/bin/hello", Content: []byte("a static program")}},
		Entrypoint: []string{"/bin/hello"},
	})
	if err != nil {
		panic(err)
	}
	for r := tar.NewReader(&out); ; {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			panic(err)
		}
		if !strings.HasPrefix(header.Name, "blobs/") {
			fmt.Println(header.Name)
		}
	}
	// Output:
	// oci-layout
	// index.json
	// manifest.json
}
