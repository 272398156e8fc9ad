// Reader of Kafka's index files without any library: `go run reader.go DIR` prints each answer that differs.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

var sizes = map[string]int{"offset": 8, "time": 12, "transaction": 34}

func list(row []int64) string { return strings.ReplaceAll(fmt.Sprint(row), " ", ",") }

func search(rows [][]int64, column int, target int64, size int) (int, int) {
	last := len(rows) - 1
	if last < 0 {
		return -1, -1
	}
	hot := max(0, last-8192/size)
	low, high := 0, hot
	if rows[hot][column] < target {
		low, high = hot, last
	} else if rows[0][column] > target {
		return -1, 0
	}
	for low < high {
		middle := (low + high + 1) / 2
		if key := rows[middle][column]; key == target {
			return middle, middle
		} else if key > target {
			high = middle - 1
		} else {
			low = middle
		}
	}
	if low == last {
		return low, -1
	}
	return low, low + 1
}

func ofIndex(kind string, data []byte, base int64, op string, args []int64) string {
	size, rows := sizes[kind], [][]int64{}
	for at := 0; at+size <= len(data); at += size {
		if kind == "offset" {
			rows = append(rows, []int64{base + int64(int32(binary.BigEndian.Uint32(data[at:]))), int64(int32(binary.BigEndian.Uint32(data[at+4:])))})
		} else {
			rows = append(rows, []int64{int64(binary.BigEndian.Uint64(data[at:])), base + int64(int32(binary.BigEndian.Uint32(data[at+8:])))})
		}
	}
	slot, none := -1, "null"
	switch last := len(rows) - 1; op {
	case "sanity_check":
		if len(data)%size != 0 || last >= 0 && (kind == "offset" && rows[last][0] < base || kind == "time" && (rows[last][1] < base || rows[last][0] < rows[0][0])) {
			return "error corrupt"
		}
	case "entry":
		if slot, none = int(args[0]), "error invalid_argument"; slot > last {
			slot = -1
		}
	case "lookup":
		slot, _ = search(rows, 0, args[0], size)
		none = map[string]string{"offset": list([]int64{base, 0}), "time": list([]int64{-1, base})}[kind]
	case "fetch_upper_bound":
		_, slot = search(rows, 1, int64(int32(args[1]+args[2])), size)
	}
	if slot >= 0 {
		return list(rows[slot])
	}
	return none
}

func ofTransactions(data []byte, isNew bool, base int64, op string, args []int64) string {
	found, complete := []string{}, "false"
	for at := 0; at+34 <= len(data); at += 34 {
		row := make([]int64, 4)
		binary.Decode(data[at+2:], binary.BigEndian, row)
		if isNew && (data[at] != 0 || data[at+1] != 0) || int8(data[at]) > 0 {
			return "error unsupported_version"
		}
		if op == "sanity_check" && row[2] < base {
			return "error corrupt"
		}
		if op == "all_aborted" || op == "collect_aborted" && row[2] >= args[0] && row[1] < args[1] {
			found = append(found, list(row))
		}
		if op == "collect_aborted" && row[3] >= args[1] {
			complete = "true"
			break
		}
	}
	all := "[" + strings.Join(found, ",") + "]"
	return map[string]string{"sanity_check": "null", "all_aborted": all, "collect_aborted": `{"aborted":` + all + `,"complete":` + complete + "}"}[op]
}

func main() {
	root, asked, wrong := os.Args[1], 0, 0
	table, _ := os.ReadFile(filepath.Join(root, "queries.tsv"))
	var major, minor int
	fmt.Sscanf(filepath.Base(root), "%d.%d", &major, &minor)
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n") {
		columns := strings.Split(line, "\t")
		if sizes[columns[1]] == 0 {
			continue
		}
		data, _ := os.ReadFile(filepath.Join(root, columns[2]))
		base, _ := strconv.ParseInt(columns[3], 10, 64)
		args := []int64{}
		for _, word := range strings.FieldsFunc(columns[5], func(r rune) bool { return r == ',' }) {
			number, _ := strconv.ParseInt(word, 10, 64)
			args = append(args, number)
		}
		mine := ""
		if columns[1] == "transaction" {
			mine = ofTransactions(data, major*100+minor >= 404, base, columns[4], args)
		} else {
			mine = ofIndex(columns[1], data, base, columns[4], args)
		}
		if asked++; mine != columns[6] {
			wrong++
			fmt.Printf("%s: %s(%s): %s instead of %s\n", columns[0], columns[4], columns[5], mine, columns[6])
		}
	}
	fmt.Printf("%d queries, %d wrong\n", asked, wrong)
	os.Exit(min(wrong, 1))
}
