package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// folders makes a layout whose folders are there.
func folders(t *testing.T) layout {
	t.Helper()
	l := layout{bin: t.TempDir(), state: filepath.Join(t.TempDir(), "state")}
	if err := freshState(l); err != nil {
		t.Fatal(err)
	}
	return l
}

func certificate(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestEveryCertificateIsGoodForWhatItIsUsedFor(t *testing.T) {
	l := folders(t)
	now := time.Now()
	if err := writePKI(l, now); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, l.secret("ca.crt")))
	for _, s := range subjects() {
		cert := certificate(t, l.secret(s.name+".crt"))
		for _, host := range append([]string{""}, s.hosts...) {
			if _, err := cert.Verify(x509.VerifyOptions{
				Roots: roots, DNSName: host, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
			}); err != nil {
				t.Errorf("%s for %q: %v", s.name, host, err)
			}
		}
		if s.group != "" && cert.Subject.Organization[0] != s.group {
			t.Errorf("%s is of the group %q", s.name, cert.Subject.Organization)
		}
		if _, err := os.Stat(l.kubeconfig(s.name)); err != nil {
			t.Error(err)
		}
	}
}

func TestNodesShareNoAddress(t *testing.T) {
	pods := netip.MustParsePrefix(podRange)
	services := netip.MustParsePrefix(serviceRange)
	seen := map[string]bool{hostAddress: true}
	for _, n := range nodes() {
		own := netip.MustParsePrefix(n.podRange())
		if seen[n.address()] || seen[n.podRange()] || !pods.Overlaps(own) || services.Overlaps(own) {
			t.Errorf("node %s has %s and %s", n.name, n.address(), n.podRange())
		}
		seen[n.address()], seen[n.podRange()] = true, true
	}
	for _, service := range []string{apiServerService, dnsService} {
		if !services.Contains(netip.MustParseAddr(service)) {
			t.Errorf("%s is no ClusterIP", service)
		}
	}
}

func TestHierarchiesAreThoseOfVersionOne(t *testing.T) {
	got, err := hierarchies("9:name=systemd:/\n4:memory:/outer/group\n2:cpu,cpuacct:/\n0::/unified\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []hierarchy{{"systemd", "/"}, {"memory", "/outer/group"}, {"cpu,cpuacct", "/"}}
	if len(got) != len(want) {
		t.Fatalf("found %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("found %v, want %v", got[i], want[i])
		}
	}
	if _, err := hierarchies("0::/unified\n"); !errors.Is(err, errNoGroups) {
		t.Errorf("a machine with version 2 alone: %v", err)
	}
}

func TestAComponentIsStoppedAndStartedAsItWas(t *testing.T) {
	l := folders(t)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("no program to run: ", err)
	}
	if err := startAll(l, component{Name: "idler", Args: []string{sleep, "600"}}); err != nil {
		t.Fatal(err)
	}
	first, err := l.component("idler")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.restart("idler"); err == nil {
		t.Error("a component that runs was started again")
	}
	if err := l.stop("idler"); err != nil {
		t.Fatal(err)
	}
	if running(first.PID) {
		t.Error("it runs after it was stopped")
	}
	if err := l.restart("idler"); err != nil {
		t.Fatal(err)
	}
	second, err := l.component("idler")
	if err != nil {
		t.Fatal(err)
	}
	if second.PID == first.PID || !running(second.PID) {
		t.Errorf("started as process %d after %d", second.PID, first.PID)
	}
	if err := l.stop("idler"); err != nil {
		t.Fatal(err)
	}
}

func TestAnotherProcessIsNotTakenForTheSandbox(t *testing.T) {
	l := folders(t)
	if err := recordSandbox(l, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if pid, err := sandboxPID(l); err != nil || pid != os.Getpid() {
		t.Errorf("the sandbox is %d, %v", pid, err)
	}
	if err := l.write(component{Name: "sandbox", Args: []string{"1"}, PID: os.Getpid()}); err != nil {
		t.Fatal(err)
	}
	if _, err := sandboxPID(l); !errors.Is(err, errNotUp) {
		t.Errorf("a process that began at another time passes for the sandbox: %v", err)
	}
}

func TestGroupsAreRemovedFromTheDeepest(t *testing.T) {
	l := folders(t)
	group := filepath.Join(t.TempDir(), "sandbox-n1")
	if err := os.MkdirAll(filepath.Join(group, "kubepods", "pod1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.groups(), []byte(group+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := removeGroups(l); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(group); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the group is still there: %v", err)
	}
}
