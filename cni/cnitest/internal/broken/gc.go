package main

import "github.com/cnikit/cnikit/cni"

func gcFaults() map[string]fault {
	return map[string]fault{
		"gc-fails-without-state": around("chained", cni.CommandGC, func(inv cni.Invocation, next serve) ([]byte, error) {
			if len(records(dataDir(inv))) == 0 {
				return nil, cni.Errorf(100, "there is no state")
			}
			return next(inv)
		}),
		"gc-prints": after(cni.CommandGC, func(c *call) {
			if c.exit == 0 {
				c.stdout = []byte("{}\n")
			}
		}),
		"gc-spares-the-first-only": around("chained", cni.CommandGC, func(inv cni.Invocation, next serve) ([]byte, error) {
			valid := append(attachments(inv, "cni.dev/valid-attachments"), attachments(inv, "cni.dev/attachments")...)
			return next(withAttachments(inv, valid[:min(len(valid), 1)]))
		}),
		"gc-reads-one-key": around("chained", cni.CommandGC, func(inv cni.Invocation, next serve) ([]byte, error) {
			return next(withAttachments(inv, attachments(inv, "cni.dev/valid-attachments")))
		}),
		"gc-does-nothing": around("chained", cni.CommandGC, func(cni.Invocation, serve) ([]byte, error) {
			return nil, nil
		}),
		"gc-takes-empty-for-missing": around("ipam", cni.CommandGC, func(inv cni.Invocation, next serve) ([]byte, error) {
			if len(attachments(inv, "cni.dev/valid-attachments")) == 0 {
				return nil, nil
			}
			return next(inv)
		}),
	}
}

func attachments(inv cni.Invocation, key string) (list []map[string]any) {
	var config map[string]any
	decode(inv.Config, &config)
	entries, _ := config[key].([]any)
	for _, entry := range entries {
		if attachment, ok := entry.(map[string]any); ok {
			list = append(list, attachment)
		}
	}
	return list
}

// withAttachments is the request with another list, under both of its keys.
func withAttachments(inv cni.Invocation, list []map[string]any) cni.Invocation {
	if list == nil {
		list = []map[string]any{}
	}
	return with(with(inv, "cni.dev/valid-attachments", list), "cni.dev/attachments", list)
}
