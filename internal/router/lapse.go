package router

// A router whose leadership has run out keeps its leases, for it may lead on under the same term
// once the API server is back. Another may lead meanwhile, and clients may reach either. So it
// does only what is right in both cases: it extends a lease whose request has been written, and
// takes a terminal outcome, which proves itself. It opens no start window, since one who takes over waits for those
// that were open when the term was written, and it vouches for no execution: what it takes for
// dead may have been renewed, and begun, with the other.

// lapsed is the refusal of everything else.
func lapsed() *Refusal {
	return refuse(ReasonNoLeader, "", "this router's leadership has run out")
}
