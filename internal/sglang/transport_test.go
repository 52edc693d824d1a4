package sglang

import (
	"testing"
	"time"
)

func TestConnectionsRestForLessTimeThanTheEngineKeepsThem(t *testing.T) {
	const engineKeepAlive = 5 * time.Second
	got := NewTransport().IdleConnTimeout
	if got <= 0 || got > engineKeepAlive/2 {
		t.Errorf("idle connections rest for %v, want well under %v", got, engineKeepAlive)
	}
}

func TestAHungCallHoldsUpNoOther(t *testing.T) {
	if got := NewTransport().MaxConnsPerHost; got != 0 {
		t.Errorf("at most %d connections to an engine, want no limit", got)
	}
}
