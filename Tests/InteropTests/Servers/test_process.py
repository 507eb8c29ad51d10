"""Ends the programs that the tests start."""

import os
import sys
import threading


def end_with_tests():
    """Ends this program when standard input closes, which happens when the process that started it exits or crashes."""
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
