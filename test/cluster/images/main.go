package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/berthmaster/berthmaster/test/cluster/image"
)

func main() {
	var c config
	flag.StringVar(&c.root, "root", "../..", "folder of the project")
	flag.StringVar(&c.programs, "programs", "../../bin", "folder with manager and sglang-sim, linked statically")
	flag.StringVar(&c.cluster, "cluster", "../../bin/cluster", "folder with coredns and pause")
	flag.StringVar(&c.cache, "cache", "../../.cache/images", "folder for what is made on the way")
	flag.StringVar(&c.tag, "manager", "docker.io/library/berthmaster:dev", "name of the manager's image")
	out := flag.String("out", "../../bin/cluster/images", "folder for the archives")
	only := flag.String("only", "", "the one image to make; empty: all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c, *out, *only); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// config says what images are made of.
type config struct {
	root, programs, cluster, cache, tag string
}

// run writes the archives.
func run(ctx context.Context, c config, out, only string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for name, make := range map[string]func(context.Context) (image.Image, error){
		"manager": c.manager, "sglang-sim": c.engine, "coredns": c.dns, "pause": c.pause, "python": c.python,
	} {
		if only != "" && only != name {
			continue
		}
		made, err := make(ctx)
		if err != nil {
			return fmt.Errorf("image of %s: %w", name, err)
		}
		if err := made.Save(filepath.Join(out, name+".tar")); err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "images: made", made.Name)
	}
	return nil
}

func (c config) manager(context.Context) (image.Image, error) {
	return static(c.tag, filepath.Join(c.programs, "manager"))
}

// engine has Python beside the simulated server, as the images of SGLang have, for hooks of pods.
func (c config) engine(ctx context.Context) (image.Image, error) {
	made, err := static("registry.local/sglang-sim:1", filepath.Join(c.programs, "sglang-sim"))
	if err != nil {
		return image.Image{}, err
	}
	it, err := askInterpreter(ctx)
	if err != nil {
		return image.Image{}, err
	}
	made.Layer.Link("/bin/python3", it.Program)
	made.Env = []string{"PATH=/bin:/"}
	return made, it.addTo(ctx, &made.Layer)
}

func (c config) dns(context.Context) (image.Image, error) {
	return static("registry.local/coredns:1", filepath.Join(c.cluster, "coredns"))
}

func (c config) pause(context.Context) (image.Image, error) {
	return static("registry.local/pause:1", filepath.Join(c.cluster, "pause"))
}

// static is the image of one program that needs nothing else.
func static(name, program string) (image.Image, error) {
	if err := checkStatic(program); err != nil {
		return image.Image{}, err
	}
	inside := "/" + filepath.Base(program)
	made := image.Image{Name: name, Entrypoint: []string{inside}, Env: []string{"PATH=/"}}
	made.Layer.Program(program, inside)
	accounts(&made.Layer)
	return made, nil
}

// accounts names the user that images run as.
func accounts(l *image.Layer) {
	l.Text("/etc/passwd", "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")
	l.Text("/etc/group", "root:x:0:\nnonroot:x:65532:\n")
}
