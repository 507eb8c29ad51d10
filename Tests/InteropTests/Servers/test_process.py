"""The end of programs that the tests start."""

import os
import sys
import threading


def end_with_tests():
    """Ends this program with the process that started it, however that ends: the standard input then closes."""
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
