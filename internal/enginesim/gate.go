package enginesim

// pauseMode is how generation is paused.
type pauseMode string

// The pause modes. notPaused is the zero value.
const (
	notPaused    pauseMode = ""
	pauseAbort   pauseMode = "abort"
	pauseRetract pauseMode = "retract"
	pauseInPlace pauseMode = "in_place"
)

// gate is what a request passes before it reaches a scheduler: a pause, which parks it, and a lock that
// requests share and a weight update takes alone. A waiting update goes before new requests.
type gate struct {
	paused  pauseMode
	parked  int // requests that wait for continue
	readers int // requests inside
	writing int // updates that hold the lock: 0 or 1
	wanting int // updates that wait for it
}

// enter lets a request in, if it may.
func (g *gate) enter() bool {
	if g.paused != notPaused || g.writing+g.wanting > 0 {
		return false
	}
	g.readers++
	return true
}

// lock lets an update in, if it may.
func (g *gate) lock() bool {
	if g.readers+g.writing > 0 {
		return false
	}
	g.writing++
	g.wanting--
	return true
}
