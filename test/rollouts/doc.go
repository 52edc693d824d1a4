// Package rollouts looks at rollouts of weights from outside: it asks a local system for versions, waits
// until they are published, and makes of what the status said and the engines wrote down a timeline for
// each backend, the longest time in which nothing began, and what ran on which version.
package rollouts
