package router

// deadlines orders active leases by the time they run out: a binary heap in which every
// lease knows its own place, so that a renewal moves it in O(log n).
type deadlines []*lease

// set puts l in, or moves it, after l.expires was set.
func (d *deadlines) set(l *lease) {
	if l.place < 0 {
		l.place = len(*d)
		*d = append(*d, l)
	}
	d.up(l.place)
	d.down(l.place)
}

// drop takes l out; one that is not in is left alone.
func (d *deadlines) drop(l *lease) {
	i, end := l.place, len(*d)-1
	if i < 0 {
		return
	}
	d.swap(i, end)
	(*d)[end] = nil
	*d = (*d)[:end]
	l.place = -1
	if i < end {
		moved := (*d)[i]
		d.up(i)
		d.down(moved.place)
	}
}

func (d deadlines) swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}

func (d deadlines) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if d[parent].expires <= d[i].expires {
			return
		}
		d.swap(i, parent)
		i = parent
	}
}

func (d deadlines) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(d); child++ {
			if d[child].expires < d[least].expires {
				least = child
			}
		}
		if least == i {
			return
		}
		d.swap(i, least)
		i = least
	}
}
