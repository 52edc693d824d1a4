package sglang

import (
	"fmt"
	"net/netip"
	"slices"
)

// special refuses an address that no engine ought to have.
func (r Reach) special(to netip.AddrPort) error {
	addr := to.Addr().Unmap().WithZone("") // which network prefixes and maps would take for another
	if r.Special == SpecialAllowed {
		return nil
	}
	for _, addr := range reached(addr) {
		switch {
		case addr.IsLoopback(), addr.IsLinkLocalUnicast(), addr.IsMulticast(), addr.IsUnspecified(), broadcast(addr), reserved(addr):
			return fmt.Errorf("%w: %s is a special address (--engine-special-addresses)", ErrUnreachable, to.Addr())
		case r.Forbidden != nil && r.Forbidden(netip.AddrPortFrom(addr, to.Port())):
			return fmt.Errorf("%w: %s is the API server (--engine-special-addresses)", ErrUnreachable, to)
		}
	}
	return nil
}

// broadcast: what is sent to 255.255.255.255, or to 0.0.0.0/8, reaches whoever listens here.
func broadcast(addr netip.Addr) bool {
	return addr.Is4() && (addr.As4()[0] == 0 || addr.As4() == [4]byte{255, 255, 255, 255})
}

// reserved reports whether an address belongs to what clouds tell their machines, credentials among it, at
// addresses that are not link-local; or to translators that may lead anywhere.
func reserved(addr netip.Addr) bool {
	return slices.ContainsFunc([]netip.Prefix{
		netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 100, 100, 200}), 32),                               // Alibaba Cloud
		netip.PrefixFrom(netip.AddrFrom4([4]byte{168, 63, 129, 16}), 32),                                 // Azure
		netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0x00, 0x0e, 0xc2}), 32),                         // AWS, fd00:ec2::254
		netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0x20, 0x00, 0xce, 14: 0x02, 15: 0x54}), 128),    // Google Cloud
		netip.PrefixFrom(netip.AddrFrom16([16]byte{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}), localNAT64Bits), // RFC 8215
	}, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// localNAT64Bits is the size of 64:ff9b:1::/48, where it is each network's choice at which bits the address of IPv4
// lies: nobody else can tell where it leads.
const localNAT64Bits = 48

// reached are the addresses that a packet to addr may arrive at: itself, and an address of IPv4 that it carries, which
// a translator or a tunnel on the way takes out.
func reached(addr netip.Addr) []netip.Addr {
	list := []netip.Addr{addr}
	if !addr.Is6() {
		return list
	}
	raw := addr.As16()
	last := netip.AddrFrom4([4]byte(raw[12:]))
	switch head := [12]byte(raw[:12]); {
	case head == [12]byte{0x00, 0x64, 0xff, 0x9b}: // 64:ff9b::/96, NAT64
		list = append(list, last)
	case head == [12]byte{8: 0xff, 9: 0xff}: // ::ffff:0:0:0/96, stateless translation
		list = append(list, last)
	case head == [12]byte{}: // ::/96, as it once was
		list = append(list, last)
	case raw[0] == 0x20 && raw[1] == 0x02: // 2002::/16, 6to4
		list = append(list, netip.AddrFrom4([4]byte(raw[2:6])))
	}
	return list
}
