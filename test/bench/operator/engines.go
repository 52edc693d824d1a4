package main

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/enginesim/model"
)

// port is that of every engine; each has an address of its own.
const port = 30000

// engines are simulated engines of this process.
type engines struct {
	list []*enginesim.Server
	work sync.WaitGroup
}

// openEngines starts n engines.
func openEngines(n int) (*engines, error) {
	e := &engines{}
	for i := range n {
		engine, err := enginesim.New(enginesim.Config{
			Name: nameOf(i), Speed: 50, HealthPoll: 100 * time.Millisecond, HealthTimeout: 20 * time.Second,
			Model: model.Params{MaxRunning: 8},
		})
		if err != nil {
			e.close()
			return nil, err
		}
		e.list = append(e.list, engine)
		socket, err := engine.Listen(net.JoinHostPort(addressOf(i), strconv.Itoa(port)))
		if err != nil {
			e.close()
			return nil, err
		}
		e.work.Go(func() { _ = socket.Serve() }) // it ends with the engine
	}
	return e, nil
}

func (e *engines) close() {
	for _, engine := range e.list {
		engine.Close()
	}
	e.work.Wait()
}

func nameOf(i int) string { return fmt.Sprintf("sglang-%d", i) }

// addressOf is the loopback address of an engine, far from those that other programs use.
func addressOf(i int) string { return fmt.Sprintf("127.20.%d.%d", i/200, 1+i%200) }
