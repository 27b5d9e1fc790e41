// Package e2e tests the reference deployment, examples/bridge-vxlan, on a real
// Kubernetes whose nodes are namespaces of this machine. Its tests are all it has.
//
// [github.com/cnikit/cnikit/internal/e2e/binaries] builds the components,
// [github.com/cnikit/cnikit/internal/e2e/cluster] runs them.
package e2e
