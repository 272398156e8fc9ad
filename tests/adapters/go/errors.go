package main

import "fmt"

// opError is an error reply of the protocol: {"error": kind, "message": message}.
type opError struct{ kind, message string }

func (e opError) Error() string { return e.kind + ": " + e.message }

// unsupported is the answer to an operation that an index does not have.
type unsupported struct{}

func (unsupported) Error() string { return "unsupported" }

func failure(kind, format string, values ...any) opError {
	return opError{kind, fmt.Sprintf(format, values...)}
}
