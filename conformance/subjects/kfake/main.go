// kfake of franz-go as a broker: prints its address, keeps its records in a directory, and runs until SIGTERM.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(os.Args[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Println(cluster.ListenAddrs()[0])
	<-ended
	cluster.Close()
}
