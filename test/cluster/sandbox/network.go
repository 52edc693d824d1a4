package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// command runs a program to its end.
func command(program string, args ...string) error {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// ip runs lines of ip(8), one after the other.
func ip(lines ...string) error {
	for _, line := range lines {
		if err := command("ip", strings.Fields(line)...); err != nil {
			return err
		}
	}
	return nil
}

// layNetwork makes the switch that host and nodes are plugged into.
func layNetwork() error {
	if err := ip(
		"link set lo up",
		"link add switch type bridge",
		"addr add "+hostAddress+"/24 dev switch",
		"link set switch up",
	); err != nil {
		return err
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

// plugIn gives a node, known by its first process, a cable to the switch, and the host the routes to
// its pods. ClusterIPs are reached through the first node, which is as good as any other.
func plugIn(n node, pid int) error {
	lines := []string{
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", n.plug(), pid),
		"link set " + n.plug() + " master switch up",
		"route replace " + n.podRange() + " via " + n.address(),
	}
	if n.number == 1 {
		lines = append(lines, "route replace "+serviceRange+" via "+n.address())
	}
	return ip(lines...)
}

// configureNetwork is a node's own part, done inside of it once it is plugged in.
func configureNetwork(n node) error {
	if err := ip(
		"link set lo up",
		"addr add "+n.address()+"/24 dev eth0",
		"link set eth0 up",
		"route add default via "+hostAddress,
	); err != nil {
		return err
	}
	for name, value := range map[string]int{
		"ipv4/ip_forward": 1, "bridge/bridge-nf-call-iptables": 1, "ipv4/conf/all/rp_filter": 0,
	} {
		if err := os.WriteFile("/proc/sys/net/"+name, []byte(strconv.Itoa(value)), 0o644); err != nil {
			return fmt.Errorf("network of %s: %w", n.name, err)
		}
	}
	return nil
}

// cut unplugs a node: nothing reaches it and it reaches nothing, and its pods run on.
func cut(n node) error { return ip("link set " + n.plug() + " down") }

// mend plugs it in again. Routes through a link that was down are gone.
func mend(n node) error { return ip("link set " + n.plug() + " up") }
