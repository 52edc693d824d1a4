package connect

import (
	"context"
	"fmt"
	"net"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// tokenSeconds is how long a requested token lives: the least that the API server grants.
const tokenSeconds = 600

// requestToken asks the API server for a token of a service account. Users who identify themselves by
// a client certificate have none of their own, and the router cannot see their certificate.
func requestToken(ctx context.Context, config *rest.Config, namespace, account string) (string, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("client of the API server: %w", err)
	}
	answer, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenSeconds))},
	}, metav1.CreateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("namespace %s has no service account %s: name one that may get inferencepools/leases", namespace, account)
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("you may not create tokens of service account %s/%s (create on serviceaccounts/token): %w", namespace, account, err)
	case err != nil:
		return "", fmt.Errorf("token of service account %s/%s: %w", namespace, account, err)
	}
	return answer.Status.Token, nil
}

// loopback: an address of this machine only.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
