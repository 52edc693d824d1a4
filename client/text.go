package client

import (
	"strings"
	"unicode"
)

// maxText bounds foreign text in an error, in runes.
const maxText = 512

// oneLine makes foreign text safe to show: no control characters, no runs of white space, bounded.
func oneLine(text string) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text)
	runes := []rune(strings.Join(strings.Fields(printable), " "))
	if len(runes) > maxText {
		return string(runes[:maxText]) + "..."
	}
	return string(runes)
}
