// Package jsonscan finds a few values in a JSON document that passes by in pieces, in memory that
// does not grow with the document. Nothing is kept of what nobody asked for, so that an image of
// tens of MiB in front of the field that matters costs a pass over its bytes and no more.
//
// The scanner is strict about the levels that it reports, and only counts brackets below them: a
// document that it accepts may still be refused by a full parser. A document in another encoding
// than UTF-8 is refused at its first byte. Members of one name may appear twice, and each is
// reported, because parsers disagree on which one counts.
package jsonscan
