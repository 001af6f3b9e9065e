package child

import (
	"bufio"
	"fmt"
	"io"
	"time"
)

// Order is a message to a [Watch].
type Order struct {
	Group    int           // the process group to kill; 0: none
	Deadline time.Duration // the time of the kill, by [Now], unless another order moves it
	Grace    time.Duration // how long the group may go on when this program is gone, but not beyond the deadline
	Mark     string        // the [Config]'s: the watch also kills processes that have it; "": none
}

const (
	orderLine = "%d %d %d %q\n"
	dismissed = "dismissed\n"
)

// line returns the order as a line for the pipe, which only the watch reads.
func (o Order) line() string { return fmt.Sprintf(orderLine, o.Group, o.Deadline, o.Grace, o.Mark) }

// readOrders sends the orders in in to the channel, and closes the channel at the end of in. It returns true if the
// watch was dismissed, and false if the sender of the orders is gone.
func readOrders(in io.Reader, orders chan<- Order) bool {
	defer close(orders)
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadString('\n')
		if line == dismissed {
			return true
		}
		if err != nil {
			return false
		}
		var o Order
		if _, err := fmt.Sscanf(line, orderLine, &o.Group, &o.Deadline, &o.Grace, &o.Mark); err == nil {
			orders <- o
		}
	}
}
