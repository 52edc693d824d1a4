// Package desk offers the runs of conformance scenarios over HTTP, so that a client in any language can
// be tested by them, whoever plays the pool.
//
//	GET  /scenarios               the table
//	POST /runs {"scenario": NAME} begins a run: {"run", "baseURL", "routerToken", "engineKey", "authorities"}
//	GET  /runs/RUN/await?word=W   answers once the run has come as far as W
//	POST /runs/RUN/act            does the step of the body, which is not the client's
//	POST /runs/RUN/verdict        takes {"reports": [...]}, one for each step; ends the run and
//	                              answers {"violations": [...]}
package desk
