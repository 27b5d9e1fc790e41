// Package disk replaces files so that a reader, and a machine that loses power,
// finds the old content or the new one, never a part; and makes directories that are
// still there then.
//
// It is for files that one program owns. Where a foreign writer may race for the
// name, exclusive creation by link(2) decides, and package ipam/hostlocal does that.
package disk
