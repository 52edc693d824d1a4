package client_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/berthmaster/berthmaster/client"
)

// One turn of a session against `make local`, which asks for no token and speaks plain HTTP. In a cluster BaseURL
// is the Service's, and Token and CAFile are those of docs/clients.md.
func Example() {
	pool, err := client.New(client.Config{
		BaseURL: "http://127.0.0.1:8085/v1alpha1/namespaces/default/inferencepools/policy",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	ctx := context.Background()
	session := pool.Session(client.SessionConfig{ID: "task-17.3", Group: "task-17", Sender: "train", Epoch: 1})
	result, err := session.Generate(ctx, client.Request{
		Body: map[string]any{"text": "hello", "sampling_params": map[string]any{"max_new_tokens": 8}},
		Wait: time.Minute,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d tokens from %s\n", result.OutputTokens, session.LastBackend().Name)
	if err := session.Close(ctx); err != nil {
		log.Print(err)
	}
}
