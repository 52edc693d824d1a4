// Package container holds the Containerfile to what it says, on machines without a container engine: its
// first stage is carried out in a clean folder, with what it copies and nothing else, and what its last
// stage would start is looked at.
package container
