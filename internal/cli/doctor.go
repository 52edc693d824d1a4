package cli

import "github.com/spf13/cobra"

func newDoctor(*env) *cobra.Command { return &cobra.Command{Use: "doctor"} }
func newReplay(*env) *cobra.Command { return &cobra.Command{Use: "replay"} }
