package cli

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/demo"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/term"
)

func demoCommand() command {
	return command{
		name:    "demo",
		summary: "show a lock at work while masters stop, come back and are replaced",
		help: `
Starts five masters inside this process, and workers that all want one lock. It stops two masters, and the lock goes
on changing hands. It stops a third one: no worker gets the lock any more, and the reason is printed. The masters come
back, and so does the lock. In the end one master dies permanently, and a new one takes its place while locks are held
and taken, by the steps of docs/operate/membership.md: workers get the old list of masters, then the old and the new
list, and then the new list alone. A resource that only one worker may use at a time detects two workers inside at
once.

With -masters it uses your masters. It can't stop or replace them, so it shows the lock changing hands and a refusal;
stop a master yourself.

It takes about 17 seconds, and ends with a table. If the output is no terminal, it prints plain lines. Ctrl-C ends it
early and leaves no key behind. The exit status is 0 only if every check held, 1 if not, and 130 after Ctrl-C.`,
		setup: func(fs *flag.FlagSet) action {
			d := &demonstration{}
			d.masters.defineOld(fs)
			fs.IntVar(&d.config.Workers, "workers", 5, "`number` of workers, from 2 to 16 (default 5)")
			durationVar(fs, &d.config.Act, "act", 2*time.Second,
				"`time` that each part takes, except the replacement (default 2s)")
			fs.BoolVar(&d.json, "json", false, "print only a report as JSON at the end")
			fs.BoolVar(&d.plain, "plain", false, "print lines, also to a terminal")
			return d.run
		},
	}
}

type demonstration struct {
	masters     masterFlags
	config      demo.Config
	json, plain bool
}

func (d *demonstration) run(ctx context.Context, t *terminal, _ []string) error {
	if d.masters.ca != "" || d.masters.cert != "" {
		return usage("demo: the -tls flags are for the other commands")
	}
	d.config.URLs = d.masters.urls
	show, err := demo.New(d.config)
	if err != nil {
		return usage("demo: %w", bare{err})
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop() // a second Ctrl-C ends it at once
	}()
	report, err := d.play(ctx, t, show)
	switch {
	case err != nil:
		return err
	case report.Interrupted:
		return silently(statusSignal + int(syscall.SIGINT))
	case !report.OK:
		return silently(statusNo)
	}
	return nil
}

// play runs the show for its audience: a program, a terminal, or a file.
func (d *demonstration) play(ctx context.Context, t *terminal, show *demo.Show) (demo.Report, error) {
	if d.json {
		report := show.Run(ctx, nil)
		return report, writeJSON(t.out, report)
	}
	width, height, isTerminal := term.Size(t.out)
	style := term.OwnStyle()
	style.Colour = style.Colour && isTerminal
	if !isTerminal || d.plain || os.Getenv("TERM") == "dumb" ||
		!demo.Fits(width, height, show.MostMasters(), d.config.Workers) {
		out := bufio.NewWriter(t.out) // it remembers its first error
		report := show.Run(ctx, func(e demo.Event) {
			demo.WriteEvent(out, e, style)
			_ = out.Flush()
		})
		demo.WriteReport(out, report, style)
		return report, out.Flush()
	}
	size := func() (int, int) {
		if w, h, ok := term.Size(t.out); ok {
			width, height = w, h
		}
		return width, height
	}
	screen := demo.NewScreen(t.out, style, size, show.Snapshot)
	defer screen.Close() // restores the terminal, even if the show panics
	report := show.Run(ctx, screen.Tell)
	screen.Close()
	for _, line := range screen.Diagram(width) {
		fmt.Fprintln(t.out, line)
	}
	if report.Refusal != "" {
		fmt.Fprintf(t.out, "\n%s", folded(report.Refusal, width, "", "  "))
	}
	demo.WriteReport(t.out, report, style)
	return report, nil
}
