package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// event is one that the controller may record.
type event struct{ reason, kind, action, note string }

func eventsPage(_ context.Context, root string) (string, error) {
	constants, err := apiConstants(root)
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(root, "internal/controller/*.go"))
	if err != nil {
		return "", err
	}
	var found []event
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		some, err := eventsIn(path, constants)
		if err != nil {
			return "", err
		}
		found = append(found, some...)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no event found in %d files: the controller makes them otherwise now", len(files))
	}
	slices.SortFunc(found, func(a, b event) int { return cmp.Or(cmp.Compare(a.reason, b.reason), cmp.Compare(a.note, b.note)) })
	var d document
	d.heading(1, "Events")
	d.paragraph("What a pool's events say. Each is recorded once, after what it tells has changed. The words in braces are filled in. " +
		"As all events of Kubernetes they are sent beside the work, and the last ones of a process that ends may be lost with it: " +
		"the status is what counts, and the manager's log says the same by the key `reason`.")
	d.paragraph("")
	rows := make([][]string, 0, len(found))
	for _, e := range slices.Compact(found) {
		rows = append(rows, []string{code(e.reason), e.kind, code(e.action), e.note})
	}
	d.table([]string{"reason", "type", "action", "note"}, rows)
	return d.String(), nil
}

// eventsIn finds the values of type change in a file: kind, reason, action and note in this order.
func eventsIn(path string, constants []constant) ([]event, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	var found []event
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		for _, fields := range changesOf(literal) {
			found = append(found, eventsOf(set, resolved(file, fields), constants)...)
		}
		return true
	})
	return found, nil
}

// changesOf are the fields of the changes that a literal stands for: itself, or its elements.
func changesOf(literal *ast.CompositeLit) [][]ast.Expr {
	if named(literal.Type, "change") {
		return [][]ast.Expr{literal.Elts}
	}
	list, ok := literal.Type.(*ast.ArrayType)
	if !ok || !named(list.Elt, "change") {
		return nil
	}
	var out [][]ast.Expr
	for _, e := range literal.Elts {
		if element, ok := e.(*ast.CompositeLit); ok && element.Type == nil {
			out = append(out, element.Elts)
		}
	}
	return out
}

// resolved puts what a variable was first set to in its place.
func resolved(file *ast.File, fields []ast.Expr) []ast.Expr {
	out := slices.Clone(fields)
	for i, f := range out {
		variable, ok := f.(*ast.Ident)
		if !ok {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			set, ok := n.(*ast.AssignStmt)
			if ok && set.Tok == token.DEFINE && len(set.Lhs) == 1 && named(set.Lhs[0], variable.Name) {
				out[i] = set.Rhs[0]
				return false
			}
			return true
		})
	}
	return out
}

func named(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func eventsOf(set *token.FileSet, fields []ast.Expr, constants []constant) []event {
	if len(fields) < 4 {
		return nil
	}
	e := event{kind: kindOf(set, fields[0]), action: textOf(set, fields[2], constants), note: noteOf(set, fields[3])}
	var out []event
	for _, reason := range reasonsOf(set, fields[1], constants) {
		e.reason = reason
		out = append(out, e)
	}
	return out
}

// kindOf is Normal or Warning, or both where that depends.
func kindOf(set *token.FileSet, e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return strings.TrimPrefix(s.Sel.Name, "EventType")
	}
	if _, ok := e.(*ast.CallExpr); ok {
		return "Normal or Warning"
	}
	return source(set, e)
}

// untold is the state that has no event: every backend begins so.
const untold = "BackendPending"

// reasonsOf lists the reasons that an expression may have: a word followed by a state has one for each.
func reasonsOf(set *token.FileSet, e ast.Expr, constants []constant) []string {
	sum, ok := e.(*ast.BinaryExpr)
	if !ok {
		return []string{textOf(set, e, constants)}
	}
	prefix := textOf(set, sum.X, constants)
	states := map[string]string{"Sender": "SenderState", "Backend": "BackendState"}
	var out []string
	for _, c := range constants {
		if c.kind == states[prefix] && c.kind != "" && c.name != untold {
			out = append(out, prefix+c.value)
		}
	}
	if len(out) == 0 {
		return []string{prefix + "{" + source(set, sum.Y) + "}"}
	}
	return out
}

func textOf(set *token.FileSet, e ast.Expr, constants []constant) string {
	switch v := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(v.Value); err == nil {
			return text
		}
	case *ast.SelectorExpr:
		for _, c := range constants {
			if c.name == v.Sel.Name {
				return c.value
			}
		}
	}
	return source(set, e)
}

// noteOf is an event's text, with what is filled in named in braces.
func noteOf(set *token.FileSet, e ast.Expr) string {
	switch v := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(v.Value) // what the parser took for a string is one
		return text
	case *ast.CallExpr:
		return filled(set, v)
	case *ast.SelectorExpr:
		if v.Sel.Name == "Message" {
			return "the condition's message"
		}
	}
	return "{" + source(set, e) + "}"
}

// filled writes a Sprintf with its arguments in their places.
func filled(set *token.FileSet, call *ast.CallExpr) string {
	if len(call.Args) == 0 {
		return "{" + source(set, call) + "}"
	}
	format, ok := call.Args[0].(*ast.BasicLit)
	if !ok || format.Kind != token.STRING {
		return "{" + source(set, call) + "}"
	}
	text, _ := strconv.Unquote(format.Value) // what the parser took for a string is one
	for _, argument := range call.Args[1:] {
		if at := strings.IndexByte(text, '%'); at >= 0 && at+1 < len(text) {
			text = text[:at] + "{" + lastWord(source(set, argument)) + "}" + text[at+2:]
		}
	}
	return text
}

// lastWord is what a person calls after.Failure.RequestID.
func lastWord(expression string) string {
	expression = expression[strings.LastIndexByte(expression, '.')+1:]
	name, _, _ := strings.Cut(expression, "(")
	return strings.ToLower(strings.TrimSuffix(name, "Of"))
}

func source(set *token.FileSet, e ast.Expr) string {
	var out bytes.Buffer
	if printer.Fprint(&out, set, e) != nil {
		return "?"
	}
	return out.String()
}
