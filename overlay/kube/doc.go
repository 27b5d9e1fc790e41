// Package kube is a source of nodes for package overlay: the Nodes of a Kubernetes cluster, as the API server has them.
//
//	config, err := kube.Config("") // the ServiceAccount of the pod
//	…
//	source, err := kube.New(config, kube.Options{Log: log})
//	…
//	err = source.Run(ctx, tracker)
//
// It takes from a Node what [overlay.Node] holds: name, UID, creation time, spec.podCIDRs, and the addresses, which are those
// of an annotation or else the InternalIPs. All Nodes count, also those that are not ready, cordoned or tainted: their pods
// are still there. Prefixes and addresses are not checked here; [overlay.Plan] does, and reports a bad one under the name of
// its Node. [Source.Run] says how changes and outages are dealt with.
//
// The program needs the verbs get, list and watch on nodes, which only a ClusterRole can grant:
//
//	apiVersion: rbac.authorization.k8s.io/v1
//	kind: ClusterRole
//	metadata: {name: cnikit}
//	rules:
//	- {apiGroups: [""], resources: [nodes], verbs: [get, list, watch]}
//
// # What it costs
//
// Of client-go it links one REST client, with a scheme that knows core/v1 alone, and the reflector. It asks for protobuf, and
// keeps a few hundred bytes of each Node. The API server sends each heartbeat whole; it is decoded, compared and forgotten.
//
// # Logs
//
// client-go logs through klog, which prints to standard error in a format of its own. Where it takes its logger from the
// context, which is all that listing and watching does, its messages go to Options.Log at debug level instead, and so do the
// API server's warnings. There remains what client-go sends to klog alone: that credentials could not be renewed, which are a
// ServiceAccount's token, a client certificate in a file, and those of a credential plugin. It also shows as an error of
// requests as soon as it matters. A program that wants it elsewhere, too, calls klog.SetSlogLogger.
package kube
