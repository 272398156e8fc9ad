module example.org/go-index

go 1.21
