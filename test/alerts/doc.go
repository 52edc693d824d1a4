// Package alerts tries the alerting rules and the dashboard of config/prometheus with Prometheus' own
// packages. It is a module of its own so that those stay out of the product's.
package alerts
