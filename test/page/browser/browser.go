package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// ErrMissing: there is no Chromium on this machine.
var ErrMissing = errors.New("no chromium on this machine: install the package chromium")

// Browser is a running Chromium with one tab. Whoever starts it closes it.
type Browser struct {
	command *exec.Cmd
	send    *os.File
	session string
	done    chan struct{} // closed once the browser's end of the pipe is

	mu       sync.Mutex
	next     int
	waiting  map[int]chan answer // guarded by mu
	problems []string            // guarded by mu
}

type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Find is where Chromium is.
func Find() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrMissing
}

// Start starts Chromium with a profile in that folder.
func Start(ctx context.Context, profile string) (*Browser, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	b := &Browser{send: ourOut, done: make(chan struct{}), waiting: map[int]chan answer{}}
	// The sandbox needs rights that containers often lack; the page is our own.
	b.command = exec.CommandContext(ctx, path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
		"--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	b.command.ExtraFiles = []*os.File{theirIn, theirOut} // become 3 and 4, where the protocol is spoken
	b.command.WaitDelay = 10 * time.Second
	b.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its helpers are ended with it
	err = b.command.Start()
	_, _ = theirIn.Close(), theirOut.Close()
	if err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	go b.listen(ourIn)
	if err := b.openTab(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (b *Browser) openTab(ctx context.Context) error {
	var tab struct {
		TargetID string `json:"targetId"`
	}
	if err := b.Call(ctx, "Target.createTarget", map[string]any{"url": "about:blank"}, &tab); err != nil {
		return err
	}
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	if err := b.Call(ctx, "Target.attachToTarget", map[string]any{"targetId": tab.TargetID, "flatten": true}, &attached); err != nil {
		return err
	}
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Accessibility"} {
		if err := b.Call(ctx, domain+".enable", nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the browser, and waits until it and its helpers have ended: then nothing is written to the
// profile any more.
func (b *Browser) Close() {
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b.session = ""
	_ = b.Call(ctx, "Browser.close", nil, nil) // the answer may be cut off by the end
	select {
	case <-b.done:
	case <-ctx.Done():
		_ = b.command.Process.Kill()
		<-b.done
	}
	_ = b.send.Close()
	_ = b.command.Wait() // how it ended is no matter
	b.endHelpers(ctx)
}

// endHelpers ends what is left of the browser's processes, and waits until nothing is.
func (b *Browser) endHelpers(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for syscall.Kill(-b.command.Process.Pid, syscall.SIGKILL) == nil {
		select {
		case <-tick.C:
		case <-ctx.Done(): // those that nobody reaps remain as names only
			return
		}
	}
}

// listen hands answers to those who wait for them, and keeps what the page complains about.
func (b *Browser) listen(from *os.File) {
	defer close(b.done)
	defer func() { _ = from.Close() }()
	messages := bufio.NewReaderSize(from, 1<<20)
	for {
		raw, err := messages.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			ID int `json:"id"`
			answer
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if json.Unmarshal(bytes.TrimSuffix(raw, []byte{0}), &m) != nil {
			return
		}
		b.mu.Lock()
		switch waits := b.waiting[m.ID]; {
		case waits != nil:
			waits <- m.answer
			delete(b.waiting, m.ID)
		case m.Method == "Runtime.exceptionThrown" || m.Method == "Log.entryAdded":
			b.problems = append(b.problems, string(m.Params))
		}
		b.mu.Unlock()
	}
}

// Problems are the exceptions and messages of the page so far.
func (b *Browser) Problems() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.problems...)
}

// Call makes one call of the protocol; into may be nil.
func (b *Browser) Call(ctx context.Context, method string, params map[string]any, into any) error {
	waits := make(chan answer, 1)
	b.mu.Lock()
	b.next++
	id := b.next
	b.waiting[id] = waits
	message := map[string]any{"id": id, "method": method, "params": params}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	raw, err := json.Marshal(message)
	if err == nil {
		_, err = io.Copy(b.send, bytes.NewReader(append(raw, 0)))
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("browser: %s: %w", method, err)
	}
	select {
	case a := <-waits:
		if a.Error != nil {
			return fmt.Errorf("browser: %s: %s", method, a.Error.Message)
		}
		if into == nil {
			return nil
		}
		return json.Unmarshal(a.Result, into)
	case <-b.done:
		return fmt.Errorf("browser: %s: it has ended", method)
	case <-ctx.Done():
		return fmt.Errorf("browser: %s: %w", method, ctx.Err())
	}
}

// Eval is the value of a JavaScript expression, which may be a promise.
func (b *Browser) Eval(ctx context.Context, expression string, into any) error {
	var out struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		ExceptionDetails *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err := b.Call(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &out); err != nil {
		return err
	}
	if e := out.ExceptionDetails; e != nil {
		return fmt.Errorf("browser: %s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if into == nil || out.Result.Value == nil {
		return nil
	}
	return json.Unmarshal(out.Result.Value, into)
}

// Picture writes what is seen, as a PNG.
func (b *Browser) Picture(ctx context.Context, path string) error {
	var out struct {
		Data string `json:"data"`
	}
	if err := b.Call(ctx, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &out); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(out.Data)
	if err != nil {
		return fmt.Errorf("browser: picture: %w", err)
	}
	return os.WriteFile(path, raw, 0o600)
}
