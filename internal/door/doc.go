// Package door bounds the connections of a port, and says who has to go when there is no room.
//
// A connection rests while no call of it is being answered: from its arrival until the headers of its first
// call are in, and between calls. When a port is full, a newcomer takes the place of one that rests: of the
// address that has the most of them, and of those the one that has rested longest. So whoever opens
// connections without end, or sends on them too slowly to make a call, displaces itself, and somebody
// with a few connections keeps them. A call that is being answered is never cut: when nothing rests, it is the
// newcomer that is turned away, by closing its connection at once. To leave it in the system's queue
// was considered and refused: a client that hears nothing cannot tell a full port from a dead one.
//
// Where callers are judged a connection rests until its caller has been let in: what strangers send, however
// it is put and whatever it makes the server wait for, keeps no place from anybody.
//
// An address is one of IPv4, or a network of 64 bits of IPv6, which is what one machine may choose from.
// A limit for each address was considered and refused: many clients may share one, behind a gateway or
// on a node, and there is no number that suits all of them.
//
// Headers are counted in lines as well: net/http bounds their bytes only, and a short line takes it some hundred
// bytes. That each address has a part of that memory was considered and refused, as is a limit of connections
// for each.
package door
