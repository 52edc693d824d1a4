package router

// ranking keeps the backends that take new sessions in the order of R1, so that a choice among a
// thousand need not look at each. Among backends of one capacity that order does not depend on
// how many executions a request adds; there is one heap for each capacity.
type ranking struct {
	classes []*class
}

// class is a heap of the backends of one capacity: no child comes before its parent.
type class struct {
	capacity int64
	heap     []*backend
}

// rank is where a backend is in the ranking; class is nil while it is not there.
type rank struct {
	class *class
	place int
}

// ahead is R1's order among backends of one capacity.
func ahead(a, b *backend) bool {
	if l, r := a.outstanding+a.estimate, b.outstanding+b.estimate; l != r {
		return l < r
	}
	if a.sessions != b.sessions {
		return a.sessions < b.sessions
	}
	return a.lastChosen < b.lastChosen
}

// put enters b, or moves it to where its figures belong now.
func (r *ranking) put(b *backend) {
	if b.rank.class != nil && b.rank.class.capacity != b.capacity {
		r.drop(b)
	}
	if b.rank.class == nil {
		c := r.classOf(b.capacity)
		b.rank = rank{c, len(c.heap)}
		c.heap = append(c.heap, b)
	}
	b.rank.class.settle(b.rank.place)
}

// drop takes b out; one that is not in is left alone.
func (r *ranking) drop(b *backend) {
	c := b.rank.class
	if c == nil {
		return
	}
	i, end := b.rank.place, len(c.heap)-1
	c.swap(i, end)
	c.heap[end] = nil
	c.heap = c.heap[:end]
	b.rank = rank{}
	if i < end {
		c.settle(i)
	}
	if end == 0 {
		r.forget(c)
	}
}

func (r *ranking) classOf(capacity int64) *class {
	for _, c := range r.classes {
		if c.capacity == capacity {
			return c
		}
	}
	c := &class{capacity: capacity}
	r.classes = append(r.classes, c)
	return c
}

func (r *ranking) forget(c *class) {
	for i, other := range r.classes {
		if other == c {
			end := len(r.classes) - 1
			r.classes[i], r.classes[end] = r.classes[end], nil
			r.classes = r.classes[:end]
			return
		}
	}
}

// settle moves the backend at i up or down to where it belongs.
func (c *class) settle(i int) {
	for i > 0 && ahead(c.heap[i], c.heap[(i-1)/2]) {
		c.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(c.heap); child++ {
			if ahead(c.heap[child], c.heap[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		c.swap(i, first)
		i = first
	}
}

func (c *class) swap(i, j int) {
	c.heap[i], c.heap[j] = c.heap[j], c.heap[i]
	c.heap[i].rank.place, c.heap[j].rank.place = i, j
}

// top yields those of each class that may be the best or the second best of all: its first, and
// the two that may follow it.
func (r *ranking) top(yield func(*backend) bool) {
	for _, c := range r.classes {
		for _, b := range c.heap[:min(3, len(c.heap))] {
			if !yield(b) {
				return
			}
		}
	}
}
