// Package charts tests the Helm chart with Helm's own library: what it renders is what config/default
// installs, is understood by the API's types to the last field, and changes with the values as their
// comments say.
package charts
