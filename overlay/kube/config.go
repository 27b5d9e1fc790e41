package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
)

// serviceAccountCA is where a pod finds the certificate of its cluster.
const serviceAccountCA = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"

// Config returns how to reach the API server: what the current context of a kubeconfig file says, or with "" what a pod finds
// in its environment and its ServiceAccount's volume. It reads files, and connects to nothing.
//
// A token of a ServiceAccount is read again by the client before it expires, and so are files with a token or a client
// certificate that a kubeconfig names. The kubeconfig itself, with what it holds, and the CA are read once: a program has to
// start again when they were replaced.
func Config(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return inCluster()
	}
	file, err := clientcmd.LoadFromFile(kubeconfig)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read kubeconfig: %w; create it, or name none to use the ServiceAccount of the pod", err)
	case err != nil:
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	case file.CurrentContext == "":
		return nil, fmt.Errorf("read kubeconfig %s: current-context is not set; choose one by kubectl config use-context", kubeconfig)
	}
	// Paths in it are relative to the file.
	if err := clientcmd.ResolveLocalPaths(file); err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*file, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: context %q: %w", kubeconfig, file.CurrentContext, err)
	}
	return config, nil
}

func inCluster() (*rest.Config, error) {
	const doing = "read the ServiceAccount of the pod"
	if os.Getenv("KUBERNETES_SERVICE_HOST") == "" || os.Getenv("KUBERNETES_SERVICE_PORT") == "" {
		return nil, fmt.Errorf("%s: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, as they are in a pod: "+
			"run it in one, set both, or name a kubeconfig", doing)
	}
	if _, err := certutil.NewPool(serviceAccountCA); err != nil { // InClusterConfig would go on without
		return nil, fmt.Errorf("%s: %w; %s", doing, err, mountIt)
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w; %s", doing, err, mountIt)
	}
	return config, nil
}

// mountIt is the way out when the files are missing.
const mountIt = "give the pod a serviceAccountName and leave automountServiceAccountToken on, or name a kubeconfig"
