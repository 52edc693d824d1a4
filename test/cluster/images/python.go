package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/berthmaster/berthmaster/test/cluster/image"
)

// askPython makes an interpreter say where it keeps itself.
const askPython = `import json, os, sys, sysconfig
print(json.dumps({"program": os.path.realpath(sys.executable), "folders":
    sorted({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})}))`

// interpreter is a Python of the machine.
type interpreter struct {
	Program string   `json:"program"`
	Folders []string `json:"folders"` // of its standard library
}

// python is the machine's interpreter with the Python client, each file where the machine has it, so
// that nothing has to be told that it moved.
func (c config) python(ctx context.Context) (image.Image, error) {
	client, err := c.installClient(ctx)
	if err != nil {
		return image.Image{}, err
	}
	it, err := askInterpreter(ctx)
	if err != nil {
		return image.Image{}, err
	}
	made := image.Image{
		Name: "registry.local/python-client:1", Entrypoint: []string{it.Program},
		Env: []string{"PYTHONPATH=/client", "PYTHONUTF8=1", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1"},
	}
	if err := it.addTo(ctx, &made.Layer); err != nil {
		return image.Image{}, err
	}
	accounts(&made.Layer)
	return made, made.Layer.Tree(client, "/client", leftOut)
}

// installClient installs the client and what it needs into a folder and returns it.
func (c config) installClient(ctx context.Context) (string, error) {
	venv := filepath.Join(c.cache, "venv")
	client := filepath.Join(c.cache, "client")
	if err := os.RemoveAll(client); err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(venv, "bin", "pip")); err != nil {
		if _, err := output(ctx, "python3", "-m", "venv", venv); err != nil {
			return "", err
		}
	}
	_, err := output(ctx, filepath.Join(venv, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check",
		"--target", client, filepath.Join(c.root, "clients", "python"))
	return client, err
}

func askInterpreter(ctx context.Context) (interpreter, error) {
	var it interpreter
	text, err := output(ctx, "python3", "-c", askPython)
	if err != nil {
		return it, err
	}
	return it, json.Unmarshal([]byte(text), &it)
}

// addTo adds the program, its library and every shared object that they load.
func (it interpreter) addTo(ctx context.Context, l *image.Layer) error {
	objects := []string{it.Program}
	if err := l.Same(it.Program); err != nil {
		return err
	}
	for _, folder := range it.Folders {
		if err := l.Tree(folder, folder, leftOut); err != nil {
			return err
		}
		found, err := sharedObjects(folder)
		if err != nil {
			return err
		}
		objects = append(objects, found...)
	}
	needed, err := neededBy(ctx, objects)
	if err != nil {
		return err
	}
	for _, file := range needed {
		if err := l.Same(file); err != nil {
			return err
		}
	}
	return nil
}

// leftOut is what no client needs of a library: its tests, its tools, windows on a screen, what it
// can compile again, and packages that others have installed.
func leftOut(relative string) bool {
	first, _, _ := strings.Cut(relative, "/")
	switch first {
	case "test", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip", "site-packages", "dist-packages", "bin":
		return true
	}
	return strings.HasPrefix(first, "config-") || filepath.Base(relative) == "__pycache__" ||
		strings.Contains(relative, "_tkinter") || strings.HasSuffix(relative, ".a")
}

func sharedObjects(folder string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		if relative != "." && leftOut(relative) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(file, ".so") {
			found = append(found, file)
		}
		return nil
	})
	return found, err
}

// loaded is a line of ldd: "libc.so.6 => /lib/libc.so.6 (0x7f...)", or the loader's own path.
var loaded = regexp.MustCompile(`(?m)^\s+(?:\S+ => )?(/\S+) \(0x`)

// neededBy asks the loader what it would load for these files.
func neededBy(ctx context.Context, objects []string) ([]string, error) {
	text, err := output(ctx, "ldd", objects...)
	if err != nil {
		return nil, err
	}
	return loadedBy(text), nil
}

func loadedBy(text string) []string {
	var files []string
	seen := map[string]bool{}
	for _, match := range loaded.FindAllStringSubmatch(text, -1) {
		if !seen[match[1]] {
			seen[match[1]] = true
			files = append(files, match[1])
		}
	}
	return files
}

func output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(complaint.String()))
	}
	return string(out), nil
}
