package model

import "container/heap"

// batch is the set of running requests, ordered by the step at which they finish, with enough counted about
// them to tell in constant time what a number of further decode steps will need.
type batch struct {
	heap   finishHeap
	step   int   // decode steps taken since the engine began
	phases []int // phases[p]: requests whose own tokens are p modulo the block size, less step
}

func newBatch(block int) batch { return batch{phases: make([]int, block)} }

func (b *batch) len() int { return len(b.heap) }

func (b *batch) phase(r *request) *int {
	n := len(b.phases)
	return &b.phases[((r.own-r.startStep)%n+n)%n]
}

// add starts r, whose own and generated tokens are those of this moment.
func (b *batch) add(r *request) {
	r.phase = Running
	r.startStep = b.step
	r.finishStep = b.step + r.OutputTokens - r.generated
	*b.phase(r)++
	heap.Push(&b.heap, r)
}

// remove stops r and brings its counts up to this moment.
func (b *batch) remove(r *request) {
	*b.phase(r)--
	heap.Remove(&b.heap, r.index)
	done := b.step - r.startStep
	r.own += done
	r.generated += done
	r.startStep = b.step
}

// untilFinish is the number of steps until the first request has all its tokens.
func (b *batch) untilFinish() int { return b.heap[0].finishStep - b.step }

// blocksFor is how many more blocks n further steps take.
func (b *batch) blocksFor(n int) int {
	size := len(b.phases)
	sum := 0
	for p, count := range b.phases {
		if count == 0 {
			continue
		}
		used := (p + b.step) % size
		more := (used + n + size - 1) / size
		if used > 0 {
			more-- // the block that is begun
		}
		sum += count * more
	}
	return sum
}

// stepsWithin is the largest number of steps, at most limit, that takes no more than the given blocks.
func (b *batch) stepsWithin(blocks, limit int) int {
	if b.blocksFor(limit) <= blocks {
		return limit
	}
	low, high := 0, limit // low fits, high does not
	for high-low > 1 {
		if mid := (low + high) / 2; b.blocksFor(mid) <= blocks {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// victim is the request to retract: the fewest output tokens, then the longest prompt, then the latest to come.
func (b *batch) victim() *request {
	var worst *request
	for _, r := range b.heap {
		if worst == nil || b.cheaper(r, worst) {
			worst = r
		}
	}
	return worst
}

func (b *batch) cheaper(r, s *request) bool {
	if g, h := r.generated-r.startStep, s.generated-s.startStep; g != h {
		return g < h
	}
	if r.PromptTokens != s.PromptTokens {
		return r.PromptTokens > s.PromptTokens
	}
	return r.seq > s.seq
}

// finishHeap orders by finish, and by arrival where two finish together so that equal inputs give equal outputs.
type finishHeap []*request

func (h finishHeap) Len() int { return len(h) }

func (h finishHeap) Less(i, j int) bool {
	if h[i].finishStep != h[j].finishStep {
		return h[i].finishStep < h[j].finishStep
	}
	return h[i].seq < h[j].seq
}

func (h finishHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *finishHeap) Push(x any) {
	r := x.(*request)
	r.index = len(*h)
	*h = append(*h, r)
}

func (h *finishHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return r
}
