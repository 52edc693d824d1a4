package e2e

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/clients/conformance"
	"github.com/berthmaster/berthmaster/clients/conformance/desk"
)

// pythonPatience bounds the Python client's part, the making of its environment included.
const pythonPatience = 12 * time.Minute

// pytest runs tests of the Python client in tests/system, with what they are told of the system in the
// environment. It is skipped where python3 has no venv.
func pytest(ctx context.Context, told map[string]string, tests ...string) {
	GinkgoHelper()
	client, err := filepath.Abs("../../clients/python")
	Expect(err).NotTo(HaveOccurred())
	if err := exec.CommandContext(ctx, "python3", "-c", "import ensurepip, venv").Run(); err != nil {
		Skip("the Python client is left out, since there is no python3 with venv (package python3-venv)")
	}
	made := exec.CommandContext(ctx, filepath.Join(client, "venv.sh"))
	made.Stderr = GinkgoWriter
	venv, err := made.Output()
	Expect(err).NotTo(HaveOccurred())
	cache := filepath.Dir(strings.TrimSpace(string(venv)))
	run := exec.CommandContext(ctx, filepath.Join(strings.TrimSpace(string(venv)), "bin", "python"),
		append([]string{"-m", "pytest", "-v", "--color=no", "-o", "cache_dir=" + filepath.Join(cache, "pytest-system")}, tests...)...)
	run.Dir = client
	run.Env = append(os.Environ(), "PYTHONPYCACHEPREFIX="+filepath.Join(cache, "pycache"),
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost")
	for name, value := range told {
		run.Env = append(run.Env, "BERTHMASTER_TEST_"+name+"="+value)
	}
	said, err := run.CombinedOutput()
	GinkgoWriter.Println(string(said))
	Expect(err).NotTo(HaveOccurred(), "pytest failed; what it said is above")
}

var _ = Describe("the Python client and a real pool", Ordered, func() {
	var real *stage

	BeforeAll(func(ctx SpecContext) { real = openStage(ctx, "table-python", netip.MustParseAddr("127.0.0.55")) })

	It("pass the main scenarios of the table", func(ctx SpecContext) {
		table, err := conformance.LoadMain()
		Expect(err).NotTo(HaveOccurred())
		// A run outlives the call that begins it.
		runs := desk.New(table, func(_ context.Context, s conformance.Scenario) (desk.Run, error) { return real.begin(ctx, s) })
		defer runs.Close()
		served := httptest.NewServer(runs.Handler())
		defer served.Close()
		pytest(ctx, map[string]string{"DESK": served.URL, "ROUTER": real.system.LeaseURL()}, "tests/system/test_system_main.py")
	}, SpecTimeout(pythonPatience))
})
