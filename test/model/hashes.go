package model

// hashes is a set of 64-bit hashes: open addressing in one slice of numbers, because a map takes
// five times the room.
type hashes struct {
	slots []uint64 // 0: free
	n     int
}

func newHashes() *hashes { return &hashes{slots: make([]uint64, 1<<16)} }

// add puts a hash in, and reports whether it is new.
func (h *hashes) add(hash uint64) bool {
	hash = max(hash, 1) // 0 marks what is free
	at := h.place(hash)
	if h.slots[at] == hash {
		return false
	}
	h.slots[at] = hash
	h.n++
	if 4*h.n > 3*len(h.slots) {
		h.grow()
	}
	return true
}

// place is where a hash is, or where it would be put.
func (h *hashes) place(hash uint64) int {
	mask := len(h.slots) - 1
	at := int(hash) & mask
	for h.slots[at] != 0 && h.slots[at] != hash {
		at = (at + 1) & mask
	}
	return at
}

func (h *hashes) grow() {
	old := h.slots
	h.slots = make([]uint64, 2*len(old))
	for _, hash := range old {
		if hash != 0 {
			h.slots[h.place(hash)] = hash
		}
	}
}
