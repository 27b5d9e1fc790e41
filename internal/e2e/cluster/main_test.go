package cluster_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/cnikit/cnikit/internal/e2e/binaries"
	"github.com/cnikit/cnikit/internal/e2e/cluster"
)

// victimDir makes the test binary a process that starts a cluster in that directory,
// says so, and waits to be killed.
const victimDir = "CNIKIT_E2E_TEST_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		beVictim(dir)
	}
	os.Exit(m.Run())
}

func beVictim(dir string) {
	ctx := context.Background()
	set, err := binaries.Ensure(ctx, binaries.Options{})
	if err == nil {
		_, err = cluster.Start(ctx, cluster.Options{Binaries: set, Nodes: []cluster.NodeOptions{{Name: "victim"}}, Dir: dir})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	select {}
}
