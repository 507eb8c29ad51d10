"""Runs nginx in front of a server: TLS, HTTP/2, and request bodies kept back until they are whole. Prints its port when it listens.

Usage: nginx_proxy.py FOLDER UPSTREAM_PORT LARGEST_BODY

The certificate is FOLDER/certificate.pem, for 127.0.0.1. FOLDER/access.log has a line for each request: its protocol, method, status and how many
bytes it had.
"""

import ctypes
import pathlib
import signal
import socket
import subprocess
import sys
import time

from test_process import end_with_tests

end_with_tests()

folder = pathlib.Path(sys.argv[1]).resolve()
folder.mkdir(parents=True, exist_ok=True)
subprocess.run(
    ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
     "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"],
    check=True, capture_output=True)

libc = ctypes.CDLL(None)


def run(port):
    """Starts nginx, which ends with this program; returns whether it got the port."""
    (folder / "nginx.conf").write_text(configuration(port))
    nginx = subprocess.Popen(
        ["/usr/sbin/nginx", "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"],
        preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG
    while nginx.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return nginx
        except OSError:
            time.sleep(0.01)
    return None


def configuration(port):
    return f"""
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    log_format short '$server_protocol $request_method $status $request_length';
    access_log {folder}/access.log short;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {folder}/certificate.pem;
        ssl_certificate_key {folder}/key.pem;
        client_max_body_size {sys.argv[3]};
        location / {{
            proxy_pass http://127.0.0.1:{sys.argv[2]};
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-Proto https;
            proxy_request_buffering on;
        }}
    }}
}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# nginx can't say which port it got, so it is told one; whoever takes that first, there are others.
while not (nginx := run(port := free_port())):
    pass
print(port, flush=True)
nginx.wait()
