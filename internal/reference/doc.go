// Command reference writes docs/reference from the code: the resource's fields from its schema,
// conditions, reasons and annotations from the API's constants, events from where the controller makes
// them, metrics from their descriptions, and flags from the programs themselves. `make verify` compares
// what is checked in with what it writes.
package main
