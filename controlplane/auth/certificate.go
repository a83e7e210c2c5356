// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// ownTime is how long a certificate that we made is good: clients know it by its fingerprint.
const ownTime = 10 * 365 * 24 * time.Hour

// Certificate reads a certificate and its key. When own, and both are missing, they are made: self-signed, for these
// names and addresses.
func Certificate(certFile, keyFile string, own bool, names []string) (tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(certFile, keyFile)
	if own && errors.Is(err, fs.ErrNotExist) {
		if err = makeCertificate(certFile, keyFile, names); err == nil {
			c, err = tls.LoadX509KeyPair(certFile, keyFile)
		}
	}
	return c, err
}

// Fingerprint is the SHA-256 of a certificate in DER, in hexadecimal digits, for --fingerprint of the command line.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

func makeCertificate(certFile, keyFile string, names []string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	now := time.Now().Add(-time.Hour)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "isthmus"}, NotBefore: now,
		NotAfter: now.Add(ownTime),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true,
		BasicConstraintsValid: true,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(writePEM(keyFile, "PRIVATE KEY", private, 0o600),
		writePEM(certFile, "CERTIFICATE", der, 0o644))
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// Whole or not at all: half a key would keep us from starting for good.
	if err := os.WriteFile(path+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
