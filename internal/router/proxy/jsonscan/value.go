package jsonscan

import "encoding/json"

// Kind is what a value is.
type Kind uint8

// The kinds. The zero value is that of no value.
const (
	None Kind = iota
	String
	Number
	// Literal is true, false, null, and what lenient writers add, such as NaN.
	Literal
	Object
	Array
)

// MaxText is how many bytes of a string, number or literal are kept.
const MaxText = 1024

// Completeness says whether all of a value's text was kept.
type Completeness uint8

// The values of Completeness.
const (
	Whole Completeness = iota
	// Cut: the text was longer than MaxText, or is not a JSON string.
	Cut
)

// Value is one value of the document. Text is valid during the visit only.
type Value struct {
	Kind Kind
	// Start and End are its first byte and the one behind its last, counted from the document's
	// first byte.
	Start, End int64
	// Text is a string without quotes and escapes, or a number or literal as written; nil for
	// objects and arrays.
	Text []byte
	// Complete says whether Text is all of it.
	Complete Completeness
	// Count is the number of elements or members of an array or object that was entered.
	Count int
	// First is the kind of the first element of an array that was entered.
	First Kind
}

// Interest says whether the inside of an object or array is wanted.
type Interest uint8

// The values of Interest.
const (
	// Skip passes over the inside and counts nothing.
	Skip Interest = iota
	// Look visits what is inside.
	Look
)

// Visitor is told what the scanner meets. Paths are valid during the call only.
type Visitor interface {
	// Enter is asked when an object or array begins.
	Enter(path *Path) Interest
	// Visit is told of each value when it has ended, the inner ones first.
	Visit(path *Path, v Value)
}

// Path is where a value stands in the document.
type Path struct {
	frames [maxDepth]frame
	n      int
}

// frame is an object or array that has been entered and not yet left.
type frame struct {
	kind  Kind
	place place
	key   []byte
	start int64
	count int
	first Kind
}

// place is what may come next inside a frame.
type place uint8

const (
	wantFirst place = iota // a key or element, or the end
	wantNext               // a key or element, after a comma
	wantColon
	wantValue
	wantComma // or the end
)

// Any stands for every element of an array in Path.Is.
const Any = "*"

// Is reports whether the path is that of these member names, from the top; Any stands for every
// element of an array.
func (p *Path) Is(names ...string) bool {
	if len(names) != p.n {
		return false
	}
	for i, name := range names {
		f := &p.frames[i]
		if f.kind == Array && name != Any || f.kind == Object && string(f.key) != name {
			return false
		}
	}
	return true
}

// Depth is 0 for the document itself, 1 for its members or elements.
func (p *Path) Depth() int { return p.n }

// Key is the name of the member at that depth, counted from 1; empty for an element of an array.
func (p *Path) Key(depth int) string {
	f := &p.frames[depth-1]
	if f.kind == Array {
		return ""
	}
	return string(f.key)
}

// Index is the number of the element at that depth, counted from 0.
func (p *Path) Index(depth int) int { return p.frames[depth-1].count - 1 }

// unquoted is a string's content without escapes; raw has no quotes.
func unquoted(raw []byte, escapes escapes) ([]byte, Completeness) {
	if escapes == plain {
		return raw, Whole
	}
	quoted := make([]byte, 0, len(raw)+2)
	quoted = append(append(append(quoted, '"'), raw...), '"')
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return raw, Cut
	}
	return []byte(text), Whole
}

// escapes says whether a string has any.
type escapes uint8

const (
	plain escapes = iota
	escaped
)
