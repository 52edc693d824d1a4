package model

import "hash/maphash"

// key is the same for states that differ only in which client, which backend and which manager is
// called 0 and which 1: nothing in the model tells them apart. Grants are numbered in the order in
// which they were made, and so have no other names.
func (s leases) key(seed maphash.Seed) uint64 {
	least := ^uint64(0)
	for range 2 {
		for range 2 {
			for range 2 {
				least = min(least, maphash.Comparable(seed, s))
				s = s.swapManagers()
			}
			s = s.swapBackends()
		}
		s = s.swapClients()
	}
	return least
}

func (s leases) swapManagers() leases {
	s.managers[0], s.managers[1] = s.managers[1], s.managers[0]
	if s.authority > 0 {
		s.authority = managers + 1 - s.authority
	}
	return s
}

func (s leases) swapClients() leases {
	s.clients[0], s.clients[1] = s.clients[1], s.clients[0]
	for i := range s.managers {
		r := &s.managers[i].records
		r[0], r[1] = r[1], r[0]
	}
	for i := range s.grants {
		if s.grants[i].made {
			s.grants[i].client = 1 - s.grants[i].client
		}
	}
	return s
}

func (s leases) swapBackends() leases {
	for i := range s.managers {
		u := &s.managers[i].unknown
		u[0], u[1] = u[1], u[0]
	}
	for i := range s.grants {
		if s.grants[i].made {
			s.grants[i].backend = 1 - s.grants[i].backend
		}
	}
	return s
}
