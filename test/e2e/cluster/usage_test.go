package cluster

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticks are the clock ticks a second in which Linux gives times of processes to user space.
const ticks = 100

// usage is what a process has used so far.
type usage struct {
	at     time.Time
	cpu    time.Duration
	memory int64 // MiB, resident now
}

// usageOf reads it, by proc(5).
func usageOf(pid int) (usage, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	// The name, in parentheses, may have spaces in it; what follows is numbered from 3 there.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var numbers [3]int64
	for i, field := range []int{14, 15, 24} {
		if len(fields) <= field-3 {
			return usage{}, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields)+2)
		}
		if numbers[i], err = strconv.ParseInt(fields[field-3], 10, 64); err != nil {
			return usage{}, err
		}
	}
	return usage{
		at: time.Now(), cpu: time.Duration(numbers[0]+numbers[1]) * time.Second / ticks,
		memory: numbers[2] * int64(os.Getpagesize()) >> 20,
	}, nil
}

// usages are those of the operator's replicas that run now, by pod.
func (h *house) usages(ctx context.Context) map[string]usage {
	found := map[string]usage{}
	for name := range h.managers(ctx) {
		pid, err := processOf("/manager", name)
		if err != nil {
			continue // it is being started, or ended
		}
		if used, err := usageOf(pid); err == nil {
			found[name] = used
		}
	}
	return found
}

// used says what each replica that was there all the time has used since.
func (h *house) used(ctx context.Context, before map[string]usage) string {
	leader, _ := h.leader(ctx) // nobody leads: nobody is marked
	var said []string
	for name, now := range h.usages(ctx) {
		was, there := before[name]
		if !there || now.cpu < was.cpu {
			continue
		}
		role := "follower"
		if name == leader {
			role = "leader"
		}
		millicores := 1000 * (now.cpu - was.cpu).Seconds() / now.at.Sub(was.at).Seconds()
		said = append(said, fmt.Sprintf("%s %.0fm %d MiB", role, millicores, now.memory))
	}
	return strings.Join(said, ", ")
}
