package local

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// KillEngine ends the engine's process at once, as a crash would. What the
// kubelet says about it is said by ReportTerminated.
func (s *System) KillEngine(name string) error {
	e, err := s.engine(name)
	if err != nil {
		return err
	}
	e.process.Kill()
	<-e.process.Done()
	return nil
}

// ReportTerminated says, as the kubelet does, that the engine's container has
// ended.
func (s *System) ReportTerminated(ctx context.Context, name string) error {
	return s.kubelet.reportTerminated(ctx, name)
}

// ReplacePod removes the pod of an engine that has ended, and starts another
// engine in a new pod of the same name and address.
func (s *System) ReplacePod(ctx context.Context, name string) error {
	e, err := s.engine(name)
	if err != nil {
		return err
	}
	if err := s.kubelet.remove(ctx, name); err != nil {
		return err
	}
	e.lives = 0
	return s.run(ctx, e)
}

// Incarnation returns the life of the engine that the pod's status speaks of,
// as the pool's status spells it.
func (s *System) Incarnation(name string) (string, error) {
	e, err := s.engine(name)
	if err != nil {
		return "", err
	}
	return string(e.pod.UID) + "/" + containerID(e.pod, e.lives), nil
}

// EngineNames returns the names of the engines, which are those of the pods.
func (s *System) EngineNames() []string { return engineNames(s.config.Engines) }

func (s *System) engine(name string) (*engine, error) {
	for _, e := range s.engines {
		if e.name == name {
			return e, nil
		}
	}
	return nil, fmt.Errorf("there is no engine %s", name)
}

// EngineURLs returns the addresses of the engines that run, in the order of their names.
func (s *System) EngineURLs() []string {
	var urls []string
	for _, e := range s.engines {
		select {
		case <-e.process.Done():
		default:
			urls = append(urls, "http://"+net.JoinHostPort(e.address, strconv.Itoa(s.kubelet.port)))
		}
	}
	return urls
}
