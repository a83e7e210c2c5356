// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/ppp/chap"
)

// local is the method of configured users.
type local struct {
	users   map[string]*config.User
	workers chan struct{} // who compute slow hashes
	waiting chan struct{}
}

const (
	hashWorkers = 2
	hashQueue   = 1024
)

func newLocal(a *config.AAA) (*local, error) {
	l := &local{users: map[string]*config.User{}, workers: make(chan struct{}, hashWorkers),
		waiting: make(chan struct{}, hashQueue)}
	list, err := a.ReadUsers()
	if err != nil {
		return nil, fmt.Errorf("aaa.users_file: %w", err)
	}
	for i := range list {
		l.users[list[i].Name] = &list[i]
	}
	return l, nil
}

// decide calls done, unless the user is unknown: then it returns false.
func (l *local) decide(r *access.Request, name string, done func(*access.Verdict)) bool {
	u := l.users[name]
	if u == nil {
		return false
	}
	if u.Hash == "" || r.Method != access.PAP || u.Password != "" || u.NTHash != "" {
		done(l.check(u, r))
		return true
	}
	select {
	case l.waiting <- struct{}{}:
	default:
		done(&access.Verdict{Silent: true, Why: "too many password hashes wait to be computed"})
		return true
	}
	go func() {
		l.workers <- struct{}{}
		v := l.check(u, r)
		<-l.workers
		<-l.waiting
		done(v)
	}()
	return true
}

func (l *local) check(u *config.User, r *access.Request) *access.Verdict {
	v := &access.Verdict{}
	var err error
	switch r.Method {
	case access.None: // the line is the proof
	case access.PAP:
		err = checkPAP(u, r.Password)
	case access.CHAP:
		err = checkCHAP(u, r)
	case access.MSCHAPv2:
		v.Success, err = checkMSCHAP(u, r)
	default:
		err = errors.New("an unknown method of authentication")
	}
	if err != nil {
		return refuse(r, err.Error())
	}
	v.Accept = true
	v.Plan = access.Plan{Local: true, Profile: string(u.Profile), IPv4: u.IPv4.Addr, IPv6: u.IPv6.Prefix,
		Delegated: u.Delegated.Prefix, Routes: config.Prefixes(u.Routes)}
	return v
}

var errPassword = errors.New("wrong password")

func unusable(method string) error {
	return fmt.Errorf("the user's password is kept in a form that %s cannot be checked with", method)
}

func checkPAP(u *config.User, password []byte) error {
	ok := false
	switch {
	case u.Password != "":
		ok = subtle.ConstantTimeCompare([]byte(u.Password), password) == 1
	case u.NTHash != "":
		want, _ := hex.DecodeString(string(u.NTHash)) // checked with the configuration
		got := chap.NTHash(string(password))
		ok = subtle.ConstantTimeCompare(want, got[:]) == 1
	case u.Hash.Argon():
		h, err := config.ParseArgon(u.Hash)
		ok = err == nil && verifyArgon(h, password)
	case u.Hash != "":
		ok = bcrypt.CompareHashAndPassword([]byte(u.Hash), password) == nil
	default:
		return errors.New("the user has no password")
	}
	if !ok {
		return errPassword
	}
	return nil
}

func checkCHAP(u *config.User, r *access.Request) error {
	if u.Password == "" {
		return unusable("CHAP")
	}
	want := chap.MD5(r.Identifier, string(u.Password), r.Challenge)
	if subtle.ConstantTimeCompare(want[:], r.Response) != 1 {
		return errPassword
	}
	return nil
}

func checkMSCHAP(u *config.User, r *access.Request) (string, error) {
	var hash [16]byte
	switch {
	case u.Password != "":
		hash = chap.NTHash(string(u.Password))
	case u.NTHash != "":
		b, _ := hex.DecodeString(string(u.NTHash))
		copy(hash[:], b)
	default:
		return "", unusable("MS-CHAPv2")
	}
	response, ok := chap.ParseResponse(r.Response)
	if !ok || len(r.Challenge) != chap.ChallengeSize {
		return "", errPassword
	}
	challenge, peer := [chap.ChallengeSize]byte(r.Challenge), &response.PeerChallenge
	want := chap.NTResponse(&challenge, peer, r.User, hash)
	if subtle.ConstantTimeCompare(want[:], response.NT[:]) != 1 {
		return "", errPassword
	}
	return chap.AuthenticatorResponse(hash, &response.NT, &challenge, peer, r.User), nil
}

func verifyArgon(a *config.Argon, password []byte) bool {
	sum := argon2.IDKey(password, a.Salt, a.Time, a.Memory, a.Threads, uint32(len(a.Sum)))
	return subtle.ConstantTimeCompare(sum, a.Sum) == 1
}
