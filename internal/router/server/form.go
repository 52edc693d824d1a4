package server

// form is what a JSON object of the protocol may hold. Requests are decoded by it instead of by
// encoding/json because it names the member at fault, refuses what encoding/json lets pass (a
// member twice, or spelt in other capitals), and takes a fifth of the time.
type form[T any] []entry[T]

// entry is one member of an object: its name, and how its value gets into a T.
type entry[T any] struct {
	name string
	read func(*T, *jsonReader)
}

// decode reads raw, which must be one object and nothing else, into v; r is lent to it. Members
// that are left out or null keep what v had.
func (f form[T]) decode(r *jsonReader, raw []byte, v *T) error {
	*r = jsonReader{raw: raw}
	r.space()
	f.object(r, "", v)
	r.space()
	if r.err == nil && r.at < len(raw) {
		r.fail("body", "something follows the JSON object")
	}
	return r.problem()
}

// object reads an object; within names the member that holds it, with a dot.
func (f form[T]) object(r *jsonReader, within string, v *T) {
	var seen uint64
	for r.more('{', '}', seen == 0) {
		name := r.rawText()
		r.space()
		r.expect(':')
		r.space()
		if r.err != nil {
			return
		}
		i := f.find(name)
		switch {
		case i < 0:
			r.unknown(within, name)
		case seen&(1<<i) != 0:
			r.fail(within+f[i].name, within+f[i].name+" is given twice")
		default:
			// The top bit says that some member was read, known or null.
			seen |= 1<<i | 1<<63
			r.field, r.within = f[i].name, within
			if !r.null() {
				f[i].read(v, r)
			}
		}
		r.space()
	}
}

func (f form[T]) find(name []byte) int {
	for i := range f {
		if f[i].name == string(name) {
			return i
		}
	}
	return -1
}
