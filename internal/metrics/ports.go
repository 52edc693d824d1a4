package metrics

// Port is one of the manager's ports.
type Port string

// The ports.
const (
	PortLeases  Port = "leases"
	PortMetrics Port = "metrics"
	PortProbes  Port = "probes"
)

// Connections are those of one port.
type Connections struct {
	// Open is how many there are, and Resting how many of them have no call that is being answered.
	Open, Resting int
	// Refused is how many were closed at their arrival, and Displaced how many had to go for others.
	Refused, Displaced int64
}

const (
	portConnections = "berthmaster_port_connections"
	portRefused     = "berthmaster_port_connections_refused_total"
	portDisplaced   = "berthmaster_port_connections_displaced_total"
)

// portFamilies are what the ports of this replica hold.
func portFamilies() []Family {
	return []Family{
		{portConnections, Gauge, "connections", []string{"port", "state"}, "Connections of the port: Working while a call is being answered, else Resting."},
		{portRefused, Counter, "connections", []string{"port"}, "Connections closed at their arrival, since the port was full and a call was being answered on every other."},
		{portDisplaced, Counter, "connections", []string{"port"}, "Connections without a call that were closed for a newcomer, since the port was full."},
	}
}

func (s sheet) ports(seen map[Port]Connections) {
	for port, c := range seen {
		s.put(portConnections, float64(c.Resting), string(port), "Resting")
		s.put(portConnections, float64(c.Open-c.Resting), string(port), "Working")
		s.put(portRefused, float64(c.Refused), string(port))
		s.put(portDisplaced, float64(c.Displaced), string(port))
	}
}
