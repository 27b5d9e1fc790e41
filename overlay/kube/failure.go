package kube

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// kind is what a failure is told by: a failure of the same kind is not told again, whatever port or time its text names.
type kind string

const (
	none         kind = ""
	forbidden    kind = "forbidden"
	unauthorized kind = "unauthorized"
	notFound     kind = "not found"
	certificate  kind = "certificate"
	noTLS        kind = "no TLS"
	unreachable  kind = "unreachable"
)

// failure is a failed request.
type failure struct {
	kind kind
	err  error
}

// explain says what failed and what to do about it. wire says that there was no answer.
func explain(verb, server string, err error, wire bool) failure {
	k, fix := classify(server, err, wire)
	var exchange *url.Error
	if errors.As(err, &exchange) {
		err = exchange.Err // without the query
	}
	return failure{k, fmt.Errorf("%s nodes at %s: %w; %s", verb, server, err, fix)}
}

// classify returns the kind of an error and the way out.
func classify(server string, err error, wire bool) (kind, string) {
	switch {
	case apierrors.IsForbidden(err):
		return forbidden, `let a ClusterRole with the verbs get, list and watch on "nodes" of apiGroup "" be bound to this user by a ClusterRoleBinding`
	case apierrors.IsUnauthorized(err):
		return unauthorized, "the API server does not know these credentials: see that the token or certificate is of this cluster and has not expired; a kubeconfig that was replaced is read at the next start"
	case apierrors.IsNotFound(err):
		return notFound, "what answers there is no Kubernetes API server: see to address and path"
	case badCertificate(err):
		return certificate, "see that the CA is that of this cluster, that its certificate names the address, and that the clock is right; a CA that was replaced is read at the next start"
	case plain(server, err):
		return noTLS, "one side speaks TLS and the other does not: see to https:// or http:// and to the port"
	case wire:
		return unreachable, "see that the API server runs and can be reached from here; " + again
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return kind(fmt.Sprintf("status %d %s", status.Status().Code, status.Status().Reason)), again
	}
	return kind(err.Error()), again
}

const again = "it is tried again, at least once a minute"

func badCertificate(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		host         x509.HostnameError
		invalid      x509.CertificateInvalidError
		alert        tls.AlertError // the API server does not like ours
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) ||
		errors.As(err, &invalid) || errors.As(err, &alert)
}

// plain reports whether only one side speaks TLS.
func plain(server string, err error) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header) || errors.Is(err, http.ErrSchemeMismatch) ||
		strings.HasPrefix(server, "http://") && apierrors.IsBadRequest(err)
}
