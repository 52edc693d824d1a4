package child

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of processor time in /proc, on every architecture that Go runs on.
const clockTick = 10 * time.Millisecond

// Usage reads what Linux accounts to a process, from /proc (proc_pid_stat(5), proc_pid_status(5)).
type Usage struct{ PID int }

// CPU is the processor time of the process so far, in user and in system mode.
func (u Usage) CPU() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", u.PID))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold anything; user and system time are the 12th and 13th after it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("the process's times are not where they should be")
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, other := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick, errors.Join(err, other)
}

// ResidentMiB is the memory that the process has resident now.
func (u Usage) ResidentMiB() (float64, error) { return u.memory("VmRSS") }

// PeakMiB is the most memory that the process has had resident.
func (u Usage) PeakMiB() (float64, error) { return u.memory("VmHWM") }

func (u Usage) memory(line string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", u.PID))
	if err != nil {
		return 0, err
	}
	for status := range strings.Lines(string(text)) {
		if fields := strings.Fields(status); len(fields) == 3 && fields[0] == line+":" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("the status of process %d has no %s", u.PID, line)
}
