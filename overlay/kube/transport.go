package kube

import (
	"context"
	"net/http"
)

// transport notes the error of an exchange in the context of its request.
type transport struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if e, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		e.err = err
	}
	return resp, err
}

// WrappedRoundTripper lets apimachinery find the transport below, to close its idle connections.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

type exchangeKey struct{}

// exchange is how the last exchange of a request went.
type exchange struct{ err error }

// trace returns a context in which transport notes the error of an exchange.
func trace(ctx context.Context) (context.Context, *exchange) {
	e := &exchange{}
	return context.WithValue(ctx, exchangeKey{}, e), e
}
