package term

import "golang.org/x/sys/windows"

// size also switches the console to the usual control sequences. A console that can't switch counts as no terminal.
func size(fd uintptr) (width, height int, err error) {
	var mode uint32
	handle := windows.Handle(fd)
	if err := windows.GetConsoleMode(handle, &mode); err != nil {
		return 0, 0, err
	}
	var info windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(handle, &info); err != nil {
		return 0, 0, err // an input handle has no size
	}
	if err := windows.SetConsoleMode(handle, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING); err != nil {
		return 0, 0, err
	}
	return int(info.Window.Right-info.Window.Left) + 1, int(info.Window.Bottom-info.Window.Top) + 1, nil
}
