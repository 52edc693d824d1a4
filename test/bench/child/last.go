package child

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ComeLast has this process run only where no other wants the processor (SCHED_IDLE, sched(7)). The policy is
// a thread's: those that exist get it here, and each that is made later has it from its maker. With a nice value, a
// thread that runs may still keep one that wakes up waiting for some milliseconds.
func ComeLast() error {
	told := map[string]bool{}
	for before := -1; before < len(told); {
		before = len(told)
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			if told[t.Name()] {
				continue
			}
			if err := comeLast(t.Name()); err != nil {
				return err
			}
			told[t.Name()] = true
		}
	}
	return nil
}

func comeLast(thread string) error {
	id, err := strconv.Atoi(thread)
	if err != nil {
		return err
	}
	err = unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil // it has ended
	}
	return err
}
