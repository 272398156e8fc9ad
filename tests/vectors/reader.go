// Reader of sound index files of Kafka: `go run reader.go DIR` prints each answer that differs from sound.tsv.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

func answer(kind string, data []byte, base int64, query string, numbers []int64) []int64 {
	short := func(at int) int64 { return int64(int32(binary.BigEndian.Uint32(data[at:]))) }
	long := func(at int) int64 { return int64(binary.BigEndian.Uint64(data[at:])) }
	size := map[string]int{"offset": 8, "time": 12, "transaction": 34}[kind]
	entry := func(slot int) []int64 {
		at := slot * size
		switch kind {
		case "offset":
			return []int64{base + short(at), short(at + 4)}
		case "time":
			return []int64{long(at), base + short(at+8)}
		}
		return []int64{long(at + 2), long(at + 10), long(at + 18), long(at + 26)}
	}
	count, found := len(data)/size, []int64{}
	switch query {
	case "entry":
		found = entry(int(numbers[0]))
	case "lookup":
		found = map[string][]int64{"offset": {base, 0}, "time": {-1, base}}[kind]
		above := sort.Search(count, func(slot int) bool { return entry(slot)[0] > numbers[0] })
		if above > 0 {
			found = entry(above - 1)
		}
	case "fetch_upper_bound":
		bound := sort.Search(count, func(slot int) bool { return entry(slot)[1] >= numbers[1]+numbers[2] })
		if bound < count {
			found = entry(bound)
		}
	case "collect_aborted":
		for slot := range count {
			if each := entry(slot); each[2] >= numbers[0] && each[1] < numbers[1] {
				found = append(found, each...)
			}
		}
	}
	return found
}

func numbers(words string) []int64 {
	found := []int64{}
	for _, word := range strings.Fields(words) {
		number, _ := strconv.ParseInt(word, 10, 64)
		found = append(found, number)
	}
	return found
}

func main() {
	root, wrong := os.Args[1], 0
	table, _ := os.ReadFile(filepath.Join(root, "sound.tsv"))
	lines := strings.Split(strings.TrimSuffix(string(table), "\n"), "\n")
	for _, line := range lines {
		columns := strings.Split(line, "\t")
		data, _ := os.ReadFile(filepath.Join(root, columns[1]))
		mine := answer(columns[0], data, numbers(columns[2])[0], columns[3], numbers(columns[4]))
		if !slices.Equal(mine, numbers(columns[5])) {
			wrong++
			fmt.Println(columns, mine)
		}
	}
	fmt.Printf("%d queries, %d wrong\n", len(lines), wrong)
	os.Exit(min(wrong, 1))
}
