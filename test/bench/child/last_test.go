package child

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEveryThreadComesLast runs itself once more, since there is no way back without a privilege.
func TestEveryThreadComesLast(t *testing.T) {
	const inside = "BERTHMASTER_COMES_LAST"
	if os.Getenv(inside) == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), inside+"=yes")
		if out, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	release := hold(3)
	defer release()
	if err := ComeLast(); err != nil {
		t.Fatal(err)
	}
	defer hold(3)()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	if len(threads) < 6 {
		t.Fatalf("there are %d threads; the test wants some from before and some made after", len(threads))
	}
	for _, thread := range threads {
		if got := policy(t, thread.Name()); got != unix.SCHED_IDLE {
			t.Errorf("thread %s of %d has the policy %d", thread.Name(), len(threads), got)
		}
	}
}

func policy(t *testing.T, thread string) uint32 {
	t.Helper()
	id, err := strconv.Atoi(thread)
	if err != nil {
		t.Fatal(err)
	}
	attr, err := unix.SchedGetAttr(id, 0)
	if err != nil {
		t.Fatal(fmt.Errorf("thread %s: %w", thread, err))
	}
	return attr.Policy
}

// hold has n goroutines keep a thread each until release is called.
func hold(n int) (release func()) {
	var held, all sync.WaitGroup
	end := make(chan struct{})
	held.Add(n)
	for range n {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			held.Done()
			<-end
		})
	}
	held.Wait()
	return func() { close(end); all.Wait() }
}
