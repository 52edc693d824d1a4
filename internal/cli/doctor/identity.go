package doctor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Identify looks at the user's credentials and compares clocks with the API server. now is read close to
// the comparison. The error is about the comparison alone.
func Identify(ctx context.Context, config *rest.Config, now func() time.Time) (Identity, error) {
	you := Identity{TokenExpires: expiry(tokenOf(config)), LocalTime: now()}
	server, err := serverTime(ctx, config)
	if err != nil {
		return you, err
	}
	you.ServerTime, you.LocalTime = server, now()
	return you, nil
}

// tokenOf is the token that the kubeconfig holds; one that a plugin makes is the plugin's to renew.
func tokenOf(config *rest.Config) string {
	if config.BearerTokenFile != "" {
		if raw, err := os.ReadFile(config.BearerTokenFile); err == nil {
			return strings.TrimSpace(string(raw))
		}
	}
	return config.BearerToken
}

// expiry is when a JSON web token expires; zero: it is none, or does not say. Its signature is not for
// us to check: nothing is granted by it here.
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
	if json.Unmarshal(raw, &claims) != nil || claims.Expires == 0 {
		return time.Time{}
	}
	return time.Unix(claims.Expires, 0)
}

// serverTime reads the API server's clock off the Date of an answer, which it gives to strangers too.
func serverTime(ctx context.Context, config *rest.Config) (time.Time, error) {
	anonymous := rest.AnonymousClientConfig(config)
	client, err := rest.HTTPClientFor(anonymous)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the API server for the time: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(anonymous)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the API server for the time: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the API server for the time: %w", err)
	}
	reply, err := client.Do(req)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the API server for the time: %w", err)
	}
	defer reply.Body.Close()
	return http.ParseTime(reply.Header.Get("Date"))
}
