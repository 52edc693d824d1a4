package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/gomega"
)

// processOf finds the process of a program in a pod, as the sandbox numbers it: containers know their
// pod's name as HOSTNAME.
func processOf(program, pod string) (int, error) {
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, file := range found {
		command, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(command), program+"\x00") {
			continue // it has ended meanwhile, or is another
		}
		environment, err := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if err == nil && strings.Contains("\x00"+string(environment), "\x00HOSTNAME="+pod+"\x00") {
			return strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	return 0, fmt.Errorf("no process %s runs in pod %s", program, pod)
}

// kill kills a program in a pod, as running out of memory would.
func kill(program, pod string) {
	pid, err := processOf(program, pod)
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	ExpectWithOffset(1, syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
}

// alive says whether a process has not ended.
func alive(pid int) bool {
	_, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	return err == nil
}
