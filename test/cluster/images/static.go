package main

import (
	"debug/elf"
	"fmt"
)

// checkStatic refuses a program that asks for an interpreter: in an image without one, the kernel
// would say of the program itself that it does not exist.
func checkStatic(program string) error {
	file, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	defer file.Close()
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is linked dynamically; build it with CGO_ENABLED=0", program)
		}
	}
	return nil
}
