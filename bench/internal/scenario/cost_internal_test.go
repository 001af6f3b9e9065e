package scenario

import "testing"

func TestFiguresInAMastersInfoAreAdded(t *testing.T) {
	const info = "# Stats\r\ntotal_net_input_bytes:100\r\ntotal_net_output_bytes:50\r\n" +
		"# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:2\r\nused_cpu_sys_children:9\r\n" +
		"# Commandstats\r\ncmdstat_set:calls=3,usec=4,usec_per_call=1.3\r\n" +
		"cmdstat_info:calls=7,usec=1\r\ncmdstat_config|get:calls=2,usec=1\r\n"
	var sum spent
	for range 2 {
		if err := sum.add(info); err != nil {
			t.Fatal(err)
		}
	}
	if want := (spent{commands: 10, in: 200, out: 100, masterCPU: 7}); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
	for _, bad := range []string{"", "used_cpu_sys:1\n", "cmdstat_set:calls=x,usec=1\n"} {
		if err := sum.add(bad); err == nil {
			t.Errorf("%q was accepted as a master's INFO", bad)
		}
	}
	extra := make(map[string]float64)
	spent{commands: 30, in: 600, out: 90, masterCPU: 0.003, clientCPU: 0.001}.by(2, 3, extra)
	if extra["commands"] != 5 || extra["bytes_in"] != 100 || extra["master_cpu_us"] != 500 ||
		extra["client_cpu_us"] != 500 {
		t.Errorf("%v", extra)
	}
}
