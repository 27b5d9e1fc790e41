package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// credentials are the files with which the components know each other, in one directory.
type credentials struct {
	dir   string
	ca    []byte // PEM
	token string // of the user admin, in the group system:masters
}

const credentialLife = 24 * time.Hour

// newCredentials makes an authority, a certificate of the API server for the addresses
// and names, a key for the tokens of service accounts and the token of an administrator.
func newCredentials(dir string, addrs []net.IP, names []string) (*credentials, error) {
	c := &credentials{dir: dir, token: rand.Text()}
	if err := c.write(addrs, names); err != nil {
		return nil, fmt.Errorf("make credentials: %w", err)
	}
	return c, nil
}

func (c *credentials) write(addrs []net.IP, names []string) error {
	authority, authorityKey, err := issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "cnikit-e2e"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}, nil, nil)
	if err != nil {
		return err
	}
	server, serverKey, err := issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, IPAddresses: addrs, DNSNames: names,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, authorityKey)
	if err != nil {
		return err
	}
	accounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})
	files := map[string][]byte{
		"ca.crt":        c.ca,
		"apiserver.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Raw}),
		"tokens.csv":    fmt.Appendf(nil, "%s,admin,admin,system:masters\n", c.token),
	}
	for name, key := range map[string]*ecdsa.PrivateKey{"apiserver.key": serverKey, "accounts.key": accounts} {
		if files[name], err = keyPEM(key); err != nil {
			return err
		}
	}
	public, err := x509.MarshalPKIXPublicKey(accounts.Public())
	if err != nil {
		return err
	}
	files["accounts.pub"] = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	for name, data := range files {
		if err := os.WriteFile(c.path(name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (c *credentials) path(name string) string { return filepath.Join(c.dir, name) }

// issue makes a key and a certificate for it, signed by the issuer or, without one, by
// the key itself.
func issue(cert, issuer *x509.Certificate, issuerKey crypto.Signer) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if cert.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	cert.NotBefore = time.Now().Add(-time.Hour)
	cert.NotAfter = cert.NotBefore.Add(credentialLife)
	if issuer == nil {
		issuer, issuerKey = cert, key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, issuer, key.Public(), issuerKey)
	if err != nil {
		return nil, nil, err
	}
	made, err := x509.ParseCertificate(der)
	return made, key, err
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
