package network

import "slices"

// Link is the path of one client to one master, both counted from 0.
type Link struct{ Client, Master int }

// Matrix says for each client which masters it is cut off from: m[client][master] is true where the path is cut.
type Matrix [][]bool

// NewMatrix returns a matrix without cuts.
func NewMatrix(clients, masters int) Matrix {
	m := make(Matrix, clients)
	for c := range m {
		m[c] = make([]bool, masters)
	}
	return m
}

// matrixOf cuts where cut says so.
func matrixOf(clients, masters int, cut func(client, master int) bool) Matrix {
	m := NewMatrix(clients, masters)
	for c := range m {
		for i := range m[c] {
			m[c][i] = cut(c, i)
		}
	}
	return m
}

// Quorum is how many of n masters are a majority. The harness counts for itself: a lock that counts wrongly must be
// found out.
func Quorum(n int) int { return n/2 + 1 }

// IsolateClients cuts some clients off from every master.
func IsolateClients(clients, masters int, which []int) Matrix {
	return matrixOf(clients, masters, func(c, _ int) bool { return slices.Contains(which, c) })
}

// IsolateMasters cuts some masters off from every client.
func IsolateMasters(clients, masters int, which []int) Matrix {
	return matrixOf(clients, masters, func(_, m int) bool { return slices.Contains(which, m) })
}

// MinorityLost cuts all clients off from as many masters, from the first on, as can be missed.
func MinorityLost(clients, masters int) Matrix {
	return matrixOf(clients, masters, func(_, m int) bool { return m < masters-Quorum(masters) })
}

// MajorityLost cuts all clients off from one master more than can be missed.
func MajorityLost(clients, masters int) Matrix {
	return matrixOf(clients, masters, func(_, m int) bool { return m <= masters-Quorum(masters) })
}

// DifferentMajorities leaves every client a bare majority, and neighbours different ones.
func DifferentMajorities(clients, masters int) Matrix {
	return matrixOf(clients, masters, func(c, m int) bool { return (m-c%masters+masters)%masters >= Quorum(masters) })
}

// Bridge splits the clients in two halves. Each sees a bare majority; the two majorities share as few masters as
// majorities can: one when the number of masters is odd, two when it is even.
func Bridge(clients, masters int) Matrix {
	q := Quorum(masters)
	return matrixOf(clients, masters, func(c, m int) bool {
		if c < (clients+1)/2 {
			return m >= q
		}
		return m < masters-q
	})
}

// Ring cuts every client off from one master, the next client from the next master.
func Ring(clients, masters int) Matrix {
	return matrixOf(clients, masters, func(c, m int) bool { return c%masters == m })
}

// Links lists the paths that are cut.
func (m Matrix) Links() []Link {
	var out []Link
	for c := range m {
		for i, cut := range m[c] {
			if cut {
				out = append(out, Link{c, i})
			}
		}
	}
	return out
}
