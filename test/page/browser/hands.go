package browser

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// look is the pause between two looks at a condition.
const look = 50 * time.Millisecond

// Until waits until a JavaScript expression is true.
func (b *Browser) Until(ctx context.Context, expression string) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		var yes bool
		err := b.Eval(ctx, "!!("+expression+")", &yes)
		if err == nil && yes {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: not in time: %w", expression, errors.Join(ctx.Err(), err))
		}
	}
}

// Text is what an element says.
func (b *Browser) Text(ctx context.Context, selector string) (string, error) {
	var text string
	err := b.Eval(ctx, "document.querySelector("+strconv.Quote(selector)+").textContent", &text)
	return text, err
}

// Click clicks with the mouse in the middle of an element.
func (b *Browser) Click(ctx context.Context, selector string) error {
	var at struct{ X, Y float64 }
	err := b.Eval(ctx, `(() => { const e = document.querySelector(`+strconv.Quote(selector)+`); e.scrollIntoView({block: "center"});
		const r = e.getBoundingClientRect(); return {X: r.x + r.width / 2, Y: r.y + r.height / 2}; })()`, &at)
	if err != nil {
		return err
	}
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		if err := b.Call(ctx, "Input.dispatchMouseEvent", map[string]any{
			"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1,
		}, nil); err != nil {
			return err
		}
	}
	return nil
}

// Type types text where the focus is.
func (b *Browser) Type(ctx context.Context, text string) error {
	return b.Call(ctx, "Input.insertText", map[string]any{"text": text}, nil)
}

// Press presses a key by its name, e.g. ArrowRight, Enter or Tab.
func (b *Browser) Press(ctx context.Context, key string) error {
	codes := map[string]int{"Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
	for _, kind := range []string{"keyDown", "keyUp"} {
		event := map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
		if key == "Enter" && kind == "keyDown" {
			event["text"] = "\r"
		}
		if err := b.Call(ctx, "Input.dispatchKeyEvent", event, nil); err != nil {
			return err
		}
	}
	return nil
}

// Shape is a screen.
type Shape struct {
	Width, Height int
	Scale         float64
	Phone         bool
}

// Screen shows the page on a screen of that shape.
func (b *Browser) Screen(ctx context.Context, s Shape) error {
	return b.Call(ctx, "Emulation.setDeviceMetricsOverride", map[string]any{
		"width": s.Width, "height": s.Height, "deviceScaleFactor": s.Scale, "mobile": s.Phone,
	}, nil)
}

// Nameless lists the controls that a screen reader has no name for.
func (b *Browser) Nameless(ctx context.Context) ([]string, error) {
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
		}
	}
	if err := b.Call(ctx, "Accessibility.getFullAXTree", nil, &tree); err != nil {
		return nil, err
	}
	controls := map[any]bool{"button": true, "combobox": true, "textbox": true, "listbox": true, "option": true, "link": true, "region": true, "img": true, "log": true}
	var out []string
	for _, n := range tree.Nodes {
		if name, _ := n.Name.Value.(string); !n.Ignored && controls[n.Role.Value] && name == "" && n.Role.Value != "log" {
			out = append(out, fmt.Sprint(n.Role.Value))
		}
	}
	return out, nil
}
