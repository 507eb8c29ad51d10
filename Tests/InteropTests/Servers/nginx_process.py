"""Runs Debian's nginx on a free port. nginx exits when this program exits."""

import ctypes
import signal
import socket
import subprocess
import time

libc = ctypes.CDLL(None)


def serve(folder, http):
    """Prints the port once nginx accepts connections, and returns when nginx exits.

    http: A function that returns the content of the block "http" for a port.
    """
    # nginx can't report a port that the system chose. Try free ports until nginx gets one before another program does.
    while not (nginx := run(folder, http, port := free_port())):
        pass
    print(port, flush=True)
    nginx.wait()


def run(folder, http, port):
    """Starts nginx, and returns its process once nginx accepts connections. Returns None if another program uses the port."""
    # nginx writes this file once it accepts connections. A successful connection would prove nothing, because another program may use the port.
    listens = folder / "nginx.pid"
    listens.unlink(missing_ok=True)
    (folder / "nginx.conf").write_text(f"""
daemon off;
master_process off;
pid {listens};
error_log {folder}/error.log;
events {{}}
http {{
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{http(port)}
}}
""")
    nginx = subprocess.Popen(
        ["/usr/sbin/nginx", "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"],
        preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG
    while nginx.poll() is None:
        if listens.exists():
            return nginx
        time.sleep(0.01)
    return None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
