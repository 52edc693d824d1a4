package router

// links joins a value into one list; embed it. A value is in at most one list at a time.
type links[T any] struct {
	prev, next *T
	in         *list[T]
}

// list is an intrusive queue: no allocation per element, removal from the middle in O(1).
// link finds the links inside an element.
type list[T any] struct {
	first, last *T
	n           int
	link        func(*T) *links[T]
}

// add appends v, taking it out of the list that it was in.
func (l *list[T]) add(v *T) {
	k := l.link(v)
	if k.in != nil {
		k.in.remove(v)
	}
	k.in, k.prev = l, l.last
	if l.last == nil {
		l.first = v
	} else {
		l.link(l.last).next = v
	}
	l.last = v
	l.n++
}

// addOrdered puts v, which is in no list, after the last element that it is not before.
func (l *list[T]) addOrdered(v *T, before func(a, b *T) bool) {
	at := l.last
	for at != nil && before(v, at) {
		at = l.link(at).prev
	}
	if at == l.last {
		l.add(v)
		return
	}
	k := l.link(v)
	k.in, k.prev = l, at
	if at == nil {
		k.next, l.first = l.first, v
	} else {
		k.next = l.link(at).next
		l.link(at).next = v
	}
	l.link(k.next).prev = v
	l.n++
}

// remove takes v out; a value that is not in l is left alone.
func (l *list[T]) remove(v *T) {
	k := l.link(v)
	if k.in != l {
		return
	}
	if k.prev == nil {
		l.first = k.next
	} else {
		l.link(k.prev).next = k.next
	}
	if k.next == nil {
		l.last = k.prev
	} else {
		l.link(k.next).prev = k.prev
	}
	*k = links[T]{}
	l.n--
}

// all ranges from the oldest; the element at hand may be removed while ranging.
func (l *list[T]) all(yield func(*T) bool) {
	for v := l.first; v != nil; {
		next := l.link(v).next
		if !yield(v) {
			return
		}
		v = next
	}
}
