package main

import (
	"context"
	"errors"

	"github.com/berthmaster/berthmaster/test/traffic"
)

// briefly is the traffic as the story sees it: where somebody has asked for less
// of it than the story has room in, the story goes on without.
type briefly struct {
	*traffic.Player
	stage *stage
}

// Await waits for a sender to go on, if it can.
func (b briefly) Await(ctx context.Context, sender string, started int) error {
	err := b.Player.Await(ctx, sender, started)
	if errors.Is(err, traffic.ErrEnded) {
		b.stage.say("  the workload is over already: nothing to see of who goes on meanwhile")
		return nil
	}
	return err
}
