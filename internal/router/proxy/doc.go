// Package proxy is the transparent data path, for clients that know only a base URL: whatever they
// send to .../senders/{sender}/proxy/{engine path} reaches an engine under a lease that the proxy
// takes, renews and releases in their place.
//
// # The way of a request
//
// Its route decides: a generation is leased, information goes to any admissible backend, control
// is refused with the field of the spec that does the same. A generation's body is spooled, the
// first 64 KiB in memory and the rest in an unlinked file, while a scanner reads the few fields
// that matter: the session, and how many sequences it asks for. They may stand behind tens of MiB
// of image, and no lease may be taken before they are known, so nothing is sent before the body
// is in. A client that stalls in its upload therefore holds no lease and no place on an engine.
// Then the request waits for its lease in the pool's one queue, and is sent with the lease's rid
// in its body, so that the router can abort it.
//
// # Promises
//
//   - Every execution sent is leased under its real number of sequences.
//   - At most one attempt is made once a byte was written, and one more if none was.
//   - How an exchange ended is told to the router exactly as design section 5.2 has it; a client
//     that goes away is Cancelled, never Ambiguous.
//   - After an Ambiguous end the client is answered only once the execution's fate is known, and
//     told whether a repetition is safe (X-Should-Retry, which official clients obey).
//   - While the pool is held, fenced, full, paused or between versions a request waits. It is
//     answered NoBackend at once only where somebody has to repair something first.
//   - A generation ends once its caller has lost its rights to the sender, and not with the caller's token.
//   - Of what an engine tells of itself no key is passed on, and nothing that changes engines is a GET that a page
//     in somebody's browser could make.
//   - Replies are passed on as they come. What is read of them in passing is bounded.
//   - Nobody's silence ends an exchange within an hour.
package proxy
