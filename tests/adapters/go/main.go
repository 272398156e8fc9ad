// Command go-index is a complete implementation of Kafka's three index files behind the line protocol of the
// conformance harness (conformance/schemas/protocol.json): one JSON request per line on standard input, one JSON reply
// per line on standard output. It needs only Go's standard library.
//
//	go build -o go-index . && conformance run -i "exec:./go-index --release {release}"
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

// request has a field for every argument of every operation. Go reads a JSON integer into an int64 exactly; a
// language that reads numbers as doubles needs a setting against that.
type request struct {
	Op               string `json:"op"`
	Kind             string `json:"kind"`
	Path             string `json:"path"`
	BaseOffset       int64  `json:"base_offset"`
	MaxIndexSize     int64  `json:"max_index_size"`
	Writable         bool   `json:"writable"`
	Offset           int64  `json:"offset"`
	Position         int64  `json:"position"`
	FetchSize        int64  `json:"fetch_size"`
	Timestamp        int64  `json:"timestamp"`
	SkipFullCheck    bool   `json:"skip_full_check"`
	Target           int64  `json:"target"`
	N                int64  `json:"n"`
	Size             int64  `json:"size"`
	ProducerID       int64  `json:"producer_id"`
	FirstOffset      int64  `json:"first_offset"`
	LastOffset       int64  `json:"last_offset"`
	LastStableOffset int64  `json:"last_stable_offset"`
	FetchOffset      int64  `json:"fetch_offset"`
	UpperBound       int64  `json:"upper_bound"`
}

// index is what all three kinds have in common: an answer to a request, and the state.
type index interface {
	execute(r *request) (any, error)
	state() any
}

func main() {
	release := flag.String("release", "4.4.0", "the Kafka release to behave like")
	flag.Parse()
	rules, err := dialectOf(*release)
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-index:", err)
		os.Exit(2)
	}
	serve(&session{dialect: rules})
}

// serve answers requests until `stop` or until the harness is gone (end of input).
func serve(s *session) {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			fmt.Fprintln(os.Stderr, "go-index: not a request:", err)
			os.Exit(1)
		}
		reply, err := json.Marshal(s.reply(&r))
		if err != nil {
			panic(err)
		}
		out.Write(append(reply, '\n'))
		out.Flush() // a reply that remains in the buffer never arrives
		if r.Op == "stop" {
			return
		}
	}
}

// session is the one index that is open, or was.
type session struct {
	dialect dialect
	index   index
}

type okReply struct {
	OK any `json:"ok"` // null for an operation that returns nothing
}

type errorReply struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

type unsupportedReply struct {
	Unsupported bool `json:"unsupported"`
}

func (s *session) reply(r *request) any {
	value, err := s.execute(r)
	switch e := err.(type) {
	case nil:
		return okReply{value}
	case unsupported:
		return unsupportedReply{true}
	case opError:
		return errorReply{e.kind, e.message}
	default: // from the operating system
		return errorReply{"io", err.Error()}
	}
}

func (s *session) execute(r *request) (any, error) {
	switch r.Op {
	case "start":
		return map[string]any{
			"name": "go-index", "version": "1.0", "language": "go",
			"kinds": []string{"offset", "time", "transaction"},
		}, nil
	case "stop":
		return nil, nil
	case "open":
		s.index = nil // an open that fails leaves no index
		opened, err := open(r, s.dialect)
		if err == nil {
			s.index = opened
		}
		return nil, err
	}
	if s.index == nil {
		return nil, opError{"closed", "no index is open"}
	}
	if r.Op == "state" {
		return s.index.state(), nil
	}
	return s.index.execute(r)
}

func open(r *request, rules dialect) (index, error) {
	switch r.Kind {
	case "offset":
		return openOffsetIndex(r, rules)
	case "time":
		return openTimeIndex(r, rules)
	case "transaction":
		return openTransactionIndex(r, rules)
	}
	return nil, unsupported{}
}
