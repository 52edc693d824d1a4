package access

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Kubernetes is a Reviewer that asks the API server.
type Kubernetes struct {
	// Clients have the rights to create tokenreviews and subjectaccessreviews.
	Clients kubernetes.Interface
	// Audiences are those that a token must be meant for, one of them; none: the API server's own.
	Audiences []string
}

// errReview hides what the API server says about a token, which may quote it.
var errReview = errors.New("the API server could not review the token")

// Identify makes a TokenReview.
func (k Kubernetes) Identify(ctx context.Context, token string) (Identity, bool, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: k.Audiences}}
	review, err := k.Clients.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return Identity{}, false, fmt.Errorf("%w: %s", errReview, cmp.Or(string(apierrors.ReasonForError(err)), "it was not reached"))
	case !review.Status.Authenticated:
		return Identity{}, false, nil
	case len(k.Audiences) > 0 && len(review.Status.Audiences) == 0:
		return Identity{}, false, nil // whoever reviewed it does not look at audiences
	}
	user := review.Status.User
	who := Identity{User: user.Username, UID: user.UID, Groups: user.Groups, Expires: expiry(token)}
	if len(user.Extra) > 0 {
		who.Extra = make(map[string][]string, len(user.Extra))
		for name, values := range user.Extra {
			who.Extra[name] = values
		}
	}
	return who, true, nil
}

// expiry is the time that a token says it ends at. The token has been verified by the API server: that
// it says so here is not what it is believed for.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if json.Unmarshal(raw, &claims) != nil || claims.Expires <= 0 {
		return time.Time{}
	}
	return time.Unix(claims.Expires, 0)
}

// Permits makes a SubjectAccessReview.
func (k Kubernetes) Permits(ctx context.Context, who Identity, what Deed) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.User, UID: who.UID, Groups: who.Groups,
	}}
	if len(who.Extra) > 0 {
		review.Spec.Extra = make(map[string]authorizationv1.ExtraValue, len(who.Extra))
		for name, values := range who.Extra {
			review.Spec.Extra[name] = values
		}
	}
	if what.Path != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: what.Path, Verb: what.Verb}
	} else {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: what.Namespace, Name: what.Pool, Verb: what.Verb,
			Group: "inference.berthmaster.io", Version: "v1alpha1", Resource: "inferencepools", Subresource: "leases",
		}
	}
	review, err := k.Clients.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask the API server for a caller's rights: %w", err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}
