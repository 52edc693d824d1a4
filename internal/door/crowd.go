package door

// crowd is a heap of homes: first comes the one with the most guests that rest, and among equals the one
// with the guest that has rested longest.
type crowd []*home

// Len is how many homes there are.
func (c crowd) Len() int { return len(c) }

// Less reports whether home i comes before home j.
func (c crowd) Less(i, j int) bool {
	if a, b := c[i].resting.Len(), c[j].resting.Len(); a != b {
		return a > b
	}
	return c[i].longest() < c[j].longest()
}

// Swap exchanges two homes.
func (c crowd) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].place, c[j].place = i, j
}

// Push takes a home in.
func (c *crowd) Push(x any) {
	h := x.(*home)
	h.place = len(*c)
	*c = append(*c, h)
}

// Pop lets the last one go.
func (c *crowd) Pop() any {
	last := len(*c) - 1
	h := (*c)[last]
	(*c)[last] = nil
	*c = (*c)[:last]
	h.place = -1
	return h
}

// longest is the step at which its longest resting guest began to rest; 0: heap.Remove looks at a home
// that nobody of which rests once more before it goes.
func (h *home) longest() uint64 {
	first := h.resting.Front()
	if first == nil {
		return 0
	}
	return first.Value.(*guest).rested
}
