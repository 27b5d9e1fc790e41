package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// key names a cached attachment.
type key struct{ network, containerID, ifName string }

const (
	suffix = ".json"
	// maxStem keeps file names, those of temporary files included, well below the 255 bytes that file systems allow.
	maxStem = 200
)

func (k key) String() string { return k.network + "/" + k.containerID + "/" + k.ifName }

// fileName maps keys to file names without collisions: the parts, joined by a character that none of them keeps, or a hash of that when it is
// long. Readable names let a person, and a DEL of a damaged file, see whose it is.
func (k key) fileName() string {
	stem := strings.Join([]string{k.network, k.containerID, url.QueryEscape(k.ifName)}, "@")
	if len(stem) > maxStem {
		sum := sha256.Sum256([]byte(stem))
		stem = hex.EncodeToString(sum[:])
	}
	return stem + suffix
}

// parseFileName undoes fileName. A hashed name is ours but tells no key; anything else is none of our files.
func parseFileName(name string) (k key, ours bool) {
	stem, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return key{}, false
	}
	if sum, err := hex.DecodeString(stem); err == nil && len(sum) == sha256.Size {
		return key{}, true
	}
	parts := strings.Split(stem, "@")
	if len(parts) != 3 {
		return key{}, false
	}
	ifName, err := url.QueryUnescape(parts[2])
	k = key{parts[0], parts[1], ifName}
	if err != nil || k.check() != nil || k.fileName() != name {
		return key{}, false
	}
	return k, true
}

func (k key) check() error {
	if err := checkIdentifier("name", k.network); err != nil {
		return err
	}
	if err := checkIdentifier("containerID", k.containerID); err != nil {
		return err
	}
	if err := checkIfName(k.ifName); err != nil {
		return fmt.Errorf("cache key: %w", err)
	}
	return nil
}
