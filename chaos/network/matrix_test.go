package network_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos/network"
)

// reached lists the masters a client still sees, as a bit set.
func reached(m network.Matrix, client int) (set uint, n int) {
	for master, cut := range m[client] {
		if !cut {
			set |= 1 << master
			n++
		}
	}
	return set, n
}

func TestEachPatternOfCutsLeavesTheMastersThatItsNameSays(t *testing.T) {
	for _, masters := range []int{1, 3, 4, 5, 7} {
		q := masters/2 + 1
		const clients = 6
		for c := range clients {
			_, whole := reached(network.NewMatrix(clients, masters), c)
			_, minority := reached(network.MinorityLost(clients, masters), c)
			_, majority := reached(network.MajorityLost(clients, masters), c)
			_, ring := reached(network.Ring(clients, masters), c)
			_, one := reached(network.IsolateMasters(clients, masters, []int{0}), c)
			_, isolated := reached(network.IsolateClients(clients, masters, []int{2}), c)
			mine, bare := reached(network.DifferentMajorities(clients, masters), c)
			next, _ := reached(network.DifferentMajorities(clients, masters), (c+1)%masters%clients)
			if whole != masters || minority != q || majority != q-1 || ring != masters-1 || one != masters-1 ||
				bare != q {
				t.Errorf("%d masters, client %d: %d %d %d %d %d %d", masters, c, whole, minority, majority, ring, one,
					bare)
			}
			if (isolated == 0) != (c == 2) {
				t.Errorf("client %d sees %d masters when client 2 is isolated", c, isolated)
			}
			if masters > 2 && c+1 < min(clients, masters) && mine == next {
				t.Errorf("%d masters: clients %d and %d have the same majority %b", masters, c, c+1, mine)
			}
		}
		left, l := reached(network.Bridge(clients, masters), 0)
		right, r := reached(network.Bridge(clients, masters), clients-1)
		shared := 0
		for s := left & right; s != 0; s &= s - 1 {
			shared++
		}
		if l != q || r != q || shared != 2*q-masters {
			t.Errorf("bridge over %d masters: %b and %b", masters, left, right)
		}
	}
}

func TestLinksAreThePathsThatAreCut(t *testing.T) {
	if got := network.IsolateMasters(3, 5, []int{4}).Links(); len(got) != 3 ||
		got[2] != (network.Link{Client: 2, Master: 4}) {
		t.Errorf("links %v", got)
	}
}
