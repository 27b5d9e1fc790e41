package testenv

import (
	"os"
	"strings"
	"testing"
)

// Section returns the text between two marks of a document, and a function that puts
// another text in its place: for the parts of documents that tests write.
func Section(t testing.TB, document, begin, end string) (text string, replace func(text string)) {
	t.Helper()
	content, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(content), begin)
	text, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no section between the marks; add\n%s%s", document, begin, end)
	}
	return text, func(text string) {
		t.Helper()
		if err := os.WriteFile(document, []byte(before+begin+text+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
