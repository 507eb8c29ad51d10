"""Runs a server on a free port. The server exits when this program exits."""

import ctypes
import signal
import socket
import subprocess
import time

libc = ctypes.CDLL(None)


def run_until_listening(pid, start):
    """Prints the port once a server accepts connections, and returns when the server exits.

    pid: The file that the server writes once it accepts connections. A successful connection would prove nothing, because another program may
        use the port.
    start: A function that writes the configuration for a port and the file pid, and returns the command that starts the server.
    """
    # The servers can't report a port that the system chose. Try free ports until the server gets one before another program does.
    while not (server := run(pid, start, port := free_port())):
        pass
    print(port, flush=True)
    server.wait()


def run(pid, start, port):
    """Starts a server, and returns its process once it accepts connections. Returns None if another program uses the port."""
    pid.unlink(missing_ok=True)
    server = subprocess.Popen(
        start(port, pid), preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG
    while server.poll() is None:
        if pid.exists():
            return server
        time.sleep(0.01)
    return None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
