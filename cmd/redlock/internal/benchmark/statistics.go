package benchmark

import (
	"cmp"
	"math"
	"slices"
)

// exactUpTo is the number of samples of both sides up to which the p-value of [mannWhitney] is exact. Above, the normal
// approximation is as good.
const exactUpTo = 60

// confidence is the confidence level of the intervals around medians.
const confidence = 0.95

// mannWhitney is the two-sided Mann-Whitney U test, which benchstat also uses. The result is the probability that two
// samples of the same distribution differ in rank at least as much as a and b. The test assumes nothing about the
// distribution, and that samples are independent. Ties count as half. For up to 60 samples in all, the result is exact,
// also with ties. For more it is the normal approximation with corrections for ties and for continuity. It is 1 if one
// side is empty or all values are the same.
func mannWhitney(a, b []float64) float64 {
	ranks, ties := doubledRanks(a, b)
	n1, n2 := len(a), len(b)
	if n1 == 0 || n2 == 0 || len(ties) == 1 {
		return 1
	}
	sum := 0
	for _, r := range ranks[:n1] {
		sum += r
	}
	if n1+n2 <= exactUpTo {
		return exactP(ranks, n1, sum)
	}
	least := n1 * (n1 + 1) // twice the sum of the ranks 1 to n1
	return normalP(float64(sum-least)/2, n1, n2, ties)
}

// doubledRanks returns twice the ranks of a's values, then of b's. Doubled ranks are whole numbers even if ties share a
// rank. It also returns the number of values in each tie.
func doubledRanks(a, b []float64) (ranks, ties []int) {
	all := slices.Concat(a, b)
	order := ascending(all)
	ranks = make([]int, len(all))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && all[order[to]] == all[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = from + 1 + to // the mean of from+1 ... to, twice
		}
		ties = append(ties, to-from)
		from = to
	}
	return ranks, ties
}

// ascending returns the indices of the values, that of the least one first.
func ascending(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	return order
}

// exactP counts the choices of n ranks with a sum at least as far from the mean as sum.
func exactP(ranks []int, n, sum int) float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	ways := make([][]float64, n+1) // how many choices of so many ranks have this sum
	for i := range ways {
		ways[i] = make([]float64, total+1)
	}
	ways[0][0] = 1
	most := 0 // all ranks so far
	for seen, r := range ranks {
		most += r
		for k := min(seen+1, n); k > max(n-len(ranks)+seen, 0); k-- { // with fewer, those that are left are too few
			row, before := ways[k], ways[k-1]
			for s := most; s >= r; s-- {
				row[s] += before[s-r]
			}
		}
	}
	// Twice the doubled mean is 2·n·total/N. Both sides of the comparison are multiplied by N, so that they stay whole
	// numbers.
	size := len(ranks)
	distance := abs(sum*size - n*total)
	var far, all float64
	for s, w := range ways[n] {
		all += w
		if abs(s*size-n*total) >= distance {
			far += w
		}
	}
	return min(far/all, 1)
}

func abs(n int) int { return max(n, -n) }

func normalP(u float64, n1, n2 int, ties []int) float64 {
	n := float64(n1 + n2)
	correction := 0.0
	for _, t := range ties {
		correction += float64(t*t*t - t)
	}
	product := float64(n1 * n2)
	deviation := math.Sqrt(product / 12 * (n + 1 - correction/(n*(n-1))))
	z := (math.Abs(u-product/2) - 0.5) / deviation
	return min(math.Erfc(max(z, 0)/math.Sqrt2), 1)
}

// leastP is the least p-value that [mannWhitney] can return for so many samples: the value for two samples without
// overlap.
func leastP(n1, n2 int) float64 {
	if n1 == 0 || n2 == 0 {
		return 1
	}
	choices := 1.0
	for i := 1; i <= n1; i++ {
		choices *= float64(n2+i) / float64(i)
	}
	return 2 / choices
}

// Center is the median of the rounds and the interval that contains it with 95 % probability. With fewer than six
// rounds it is the range.
type Center struct {
	Median float64 `json:"median_us"`
	Low    float64 `json:"low_us"`
	High   float64 `json:"high_us"`
	N      int     `json:"n"`
	Known  bool    `json:"interval"`
}

// center returns the median of values, with an interval of order statistics. Without values the result is zeros.
func center(values []float64) Center {
	n := len(values)
	if n == 0 {
		return Center{}
	}
	sorted := slices.Sorted(slices.Values(values))
	c := Center{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Low: sorted[0], High: sorted[n-1], N: n}
	// The k-th least and the k-th greatest value enclose the median unless fewer than k values are on one side of it.
	below, term := 0.0, math.Pow(0.5, float64(n)) // P(X < k) for X of Binomial(n, 1/2), and P(X = k)
	for k := 1; 1-2*(below+term) >= confidence; k++ {
		below += term
		term *= float64(n-k+1) / float64(k)
		c.Low, c.High, c.Known = sorted[k-1], sorted[n-k], true
	}
	return c
}

// holm adjusts the p-values of several questions by the method of Holm and Bonferroni. Without it, many questions make
// a false alarm likely. With it, the probability of even one false alarm among adjusted values below 0.05 is below
// 0.05.
func holm(p []float64) []float64 {
	adjusted, least := make([]float64, len(p)), 0.0
	for rank, i := range ascending(p) {
		least = max(least, min(p[i]*float64(len(p)-rank), 1))
		adjusted[i] = least
	}
	return adjusted
}
