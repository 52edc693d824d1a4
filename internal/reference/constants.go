package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// constant is a string constant of the API.
type constant struct {
	name, kind, value, doc string
	// group is the comment of the block it stands in.
	group string
}

// apiConstants reads the string constants of the API's package, in the order of files and lines.
func apiConstants(root string) ([]constant, error) {
	files, err := filepath.Glob(filepath.Join(root, "api/v1alpha1/*.go"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var found []constant
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "zz_generated") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", path, err)
		}
		for _, d := range file.Decls {
			if block, ok := d.(*ast.GenDecl); ok && block.Tok == token.CONST {
				found = append(found, constantsOf(block)...)
			}
		}
	}
	return found, nil
}

func constantsOf(block *ast.GenDecl) []constant {
	var found []constant
	for _, s := range block.Specs {
		spec, ok := s.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			continue
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			continue
		}
		c := constant{name: spec.Names[0].Name, value: value, doc: spec.Doc.Text(), group: block.Doc.Text()}
		if c.doc == "" {
			c.doc = c.group
		}
		if kind, ok := spec.Type.(*ast.Ident); ok {
			c.kind = kind.Name
		}
		found = append(found, c)
	}
	return found
}

// says is a constant's comment without its name at the beginning.
func (c *constant) says() string {
	text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(c.doc), c.name))
	for _, verb := range []string{"surfaces ", "means that ", "is "} {
		if rest, ok := strings.CutPrefix(text, verb); ok {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return strings.TrimPrefix(text, ", ")
}

func conditionsPage(_ context.Context, root string) (string, error) {
	all, err := apiConstants(root)
	if err != nil {
		return "", err
	}
	var d document
	d.heading(1, "Conditions, states, reasons and annotations")
	d.paragraph("A condition counts for a reader only if its `observedGeneration` is at least the generation that the reader's own write returned.")
	for _, section := range []struct {
		title, head string
		has         func(constant) bool
	}{
		{"Conditions of a pool", "condition", func(c constant) bool { return strings.HasPrefix(c.name, "Condition") }},
		{"Reasons of conditions", "reason", func(c constant) bool { return c.kind == "" && strings.HasPrefix(c.name, "Reason") }},
		{"States of a backend", "state", func(c constant) bool { return c.kind == "BackendState" }},
		{"Reasons of a backend's state", "reason", func(c constant) bool { return c.kind == "BackendReason" }},
		{"States of a sender", "state", func(c constant) bool { return c.kind == "SenderState" }},
		{"Annotations and finalizers", "name", func(c constant) bool {
			return c.kind == "" && (strings.HasPrefix(c.name, "Annotation") || strings.HasPrefix(c.name, "Finalizer"))
		}},
		{"Entries of a Secret that `spec.backends.credentialsSecretRef` names", "entry", func(c constant) bool { return strings.HasPrefix(c.name, "Credentials") }},
	} {
		d.heading(2, section.title)
		d.table([]string{section.head, "meaning"}, rowsOf(all, section.has))
	}
	return d.String(), nil
}

func rowsOf(all []constant, has func(constant) bool) [][]string {
	var rows [][]string
	for _, c := range all {
		if has(c) {
			rows = append(rows, []string{code(c.value), c.says()})
		}
	}
	slices.SortStableFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return slices.CompactFunc(rows, slices.Equal[[]string])
}
