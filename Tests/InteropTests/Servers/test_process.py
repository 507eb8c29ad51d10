"""For programs that the tests start."""

import os
import sys
import threading


def end_with_tests():
    """Ends this program when the process that started it does, in whatever way: its end of the standard input closes then."""
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
