package workload

import (
	"encoding/json"
	"fmt"
	"time"
)

// clockMark begins a child's line that confirms a new setting of its clock, with its time of day.
const clockMark = "clock "

// clockPatience is how long a child may take to say so.
const clockPatience = 30 * time.Second

// SetClock makes the time of day of the child's clients wrong. It returns the time that the child has then. The child
// must have been started with a Clock, and must not be stopped. Calls at the same time are made one after the other.
func (c *Child) SetClock(s ClockSetting) (has string, err error) {
	line, err := json.Marshal(map[string]ClockSetting{"clock": s})
	if err != nil {
		return "", fmt.Errorf("workload: child: %w", err)
	}
	c.setting.Lock()
	defer c.setting.Unlock()
	select {
	case <-c.clock: // of an earlier call that did not wait for it
	default:
	}
	if _, err := c.stdin.Write(append(line, '\n')); err != nil {
		return "", fmt.Errorf("workload: child: %w", err)
	}
	select {
	case has = <-c.clock:
		return has, nil
	case <-c.exited:
		return "", fmt.Errorf("workload: the process of client %d has ended", c.client)
	case <-time.After(clockPatience):
		return "", fmt.Errorf("workload: the process of client %d does not say that its clock was set", c.client)
	}
}

// clocked returns the subject with the child's clock, if it is to have one.
func (p *parentRegisters) clocked(s Subject, setting *ClockSetting) (Subject, error) {
	if setting == nil {
		return s, nil
	}
	c, ok := s.(Clocked)
	if !ok {
		return nil, fmt.Errorf("%w: %s is no workload.Clocked, so the clock of its process can't be set",
			ErrUnsupported, s.Name())
	}
	p.wall.Set(*setting)
	return c.WithClock(p.wall.Now), nil
}

// setClock sets the child's clock and says what time it has.
func (p *parentRegisters) setClock(s ClockSetting) {
	p.wall.Set(s)
	p.sink.mu.Lock()
	defer p.sink.mu.Unlock()
	p.sink.writeLocked(clockMark, p.wall.Now().Format(time.DateTime))
}
