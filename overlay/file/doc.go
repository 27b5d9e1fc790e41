// Package file is a source of nodes for package overlay that needs no API server: a JSON file, read at the start and
// whenever it changes.
//
//	{
//	  "version": 1,
//	  "nodes": [
//	    {
//	      "name": "node-a",
//	      "uid": "6f1e5f0c-9a4b-4d0e-8f43-2d5c7c1e9b10",
//	      "created": "2025-03-01T12:00:00Z",
//	      "podCIDRs": ["10.1.1.0/24", "fd00:1:1::/64"],
//	      "addresses": ["192.0.2.1"]
//	    }
//	  ]
//	}
//
// The fields of a node are those of [overlay.Node] and mean the same; prefixes and addresses are checked by [overlay.Plan],
// which reports a bad one under the name of its node. Keys are written exactly so; one that is not known, such as a misspelt
// one, is reported.
//
// Replace the file as a whole, as [Write] does: a program that writes into it in place lets the source see halves. The source
// survives that as well, because a file that is not complete and valid changes nothing.
package file
