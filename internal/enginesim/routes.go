package enginesim

import (
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
)

// access is who may call an endpoint.
type access int

const (
	// accessOpen: everybody, keys or not.
	accessOpen access = iota
	// accessNormal: the api key, if there is one.
	accessNormal
	// accessAdmin: the admin key if there is one, else the api key if there is one.
	accessAdmin
)

// handler answers a request or returns an *apiError to be replied. Any other error means that the client or
// the engine has gone.
type handler func(w http.ResponseWriter, r *http.Request) error

// route is one endpoint.
type route struct {
	methods string // separated by a space
	path    string
	access  access
	handle  handler
}

// routes builds the whole API: faults first, then keys, then the endpoints.
func (s *Server) routes() http.Handler {
	table := map[string]route{}
	for _, r := range slices.Concat(s.openRoutes(), s.normalRoutes(), s.adminRoutes(), s.legacyRoutes()) {
		table[r.path] = r
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, simPrefix) {
			serve(s.cfg, table, w, r)
			return
		}
		s.withFaults(w, r, func(w http.ResponseWriter) { serve(s.cfg, table, w, r) })
	})
}

func serve(c Config, table map[string]route, w http.ResponseWriter, r *http.Request) {
	rt, ok := table[r.URL.Path]
	if !ok {
		writeError(w, httpError(http.StatusNotFound, "Not Found"))
		return
	}
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", strings.ReplaceAll(rt.methods, " ", ", "))
		w.WriteHeader(http.StatusOK)
		return
	}
	if !slices.Contains(strings.Fields(rt.methods), r.Method) {
		writeError(w, httpError(http.StatusMethodNotAllowed, "Method Not Allowed"))
		return
	}
	if !c.allowed(rt.access, r) {
		writeJSON(w, http.StatusUnauthorized, map[string]any{"error": "Unauthorized"})
		return
	}
	if err := rt.handle(w, r); err != nil {
		writeError(w, err)
	}
}

func (s *Server) openRoutes() []route {
	return []route{
		{"GET HEAD", "/", accessOpen, answerEmpty},
		{"GET HEAD", "/ping", accessOpen, answerEmpty},
		{"GET", "/health", accessOpen, s.handleHealth},
		{"GET", "/health_generate", accessOpen, s.handleHealthGenerate},
		{"GET", "/metrics", accessOpen, s.handleMetrics},
		{"GET", simPrefix + "state", accessOpen, s.handleSimState},
		{"GET POST DELETE", simPrefix + "faults", accessOpen, s.handleSimFaults},
	}
}

func (s *Server) normalRoutes() []route {
	return []route{
		{"GET", "/model_info", accessNormal, s.handleModelInfo},
		{"GET", "/get_model_info", accessNormal, s.handleModelInfo},
		{"GET", "/server_info", accessNormal, s.handleServerInfo},
		{"GET", "/get_server_info", accessNormal, s.handleServerInfo},
		{"GET", "/v1/loads", accessNormal, s.handleLoads},
		{"GET", "/v1/models", accessNormal, s.handleModels},
		{"POST PUT", "/generate", accessNormal, s.handleGenerate},
		{"POST", "/v1/completions", accessNormal, s.handleCompletions},
		{"POST", "/v1/chat/completions", accessNormal, s.handleChat},
		{"POST", "/open_session", accessNormal, s.handleOpenSession},
		{"POST", "/close_session", accessNormal, s.handleCloseSession},
	}
}

func (s *Server) adminRoutes() []route {
	return []route{
		{"POST", "/abort_request", accessAdmin, s.handleAbort},
		{"POST", "/pause_generation", accessAdmin, s.handlePause},
		{"POST", "/continue_generation", accessAdmin, s.handleContinue},
		{"GET POST", "/flush_cache", accessAdmin, s.handleFlush},
		{"POST", "/update_weight_version", accessAdmin, s.handleUpdateVersion},
		{"POST", "/update_weights_from_disk", accessAdmin, s.handleUpdateDisk},
		{"POST", "/update_weights_from_distributed", accessAdmin, s.handleUpdateDistributed},
		{"POST", "/update_weights_from_tensor", accessAdmin, s.handleUpdateTensor},
		{"POST", "/update_weights_from_ipc", accessAdmin, s.handleUpdateIPC},
		{"POST", "/init_weights_update_group", accessAdmin, s.handleInitGroup},
		{"POST", "/destroy_weights_update_group", accessAdmin, s.handleDestroyGroup},
		{"GET POST", "/weights_checker", accessAdmin, s.handleWeightsChecker},
		{"GET POST", "/release_memory_occupation", accessAdmin, s.handleReleaseMemory},
		{"GET POST", "/resume_memory_occupation", accessAdmin, s.handleResumeMemory},
	}
}

func (s *Server) legacyRoutes() []route {
	gone := func(http.ResponseWriter, *http.Request) error {
		return httpError(http.StatusNotFound, "Endpoint is deprecated, please use '/model_info' instead.")
	}
	absent := func(http.ResponseWriter, *http.Request) error { return httpError(http.StatusNotFound, "Not Found") }
	version, load, loads := gone, absent, s.handleLoads
	if s.cfg.Legacy != LegacyOff {
		version, load = s.handleWeightVersion, s.handleGetLoad
	}
	if s.cfg.Legacy == LegacyOnly {
		loads = absent
	}
	return []route{
		{"GET", "/weight_version", accessNormal, version},
		{"GET", "/get_weight_version", accessNormal, version},
		{"GET", "/get_load", accessNormal, load},
		{"GET", "/v1/loads", accessNormal, loads},
	}
}

func answerEmpty(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusOK)
	return nil
}

// allowed says whether a request's key opens an endpoint.
func (c Config) allowed(a access, r *http.Request) bool {
	key := c.APIKey
	switch {
	case a == accessOpen:
		return true
	case a == accessAdmin && c.AdminAPIKey != "":
		key = c.AdminAPIKey
	}
	if key == "" {
		return true
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(key)) == 1
}
