"""Runs nginx in front of a server: TLS, HTTP/2, and request bodies kept back until they are whole. Prints its port when it listens.

Usage: nginx_proxy.py FOLDER UPSTREAM_PORT LARGEST_BODY

The certificate is FOLDER/certificate.pem, for 127.0.0.1. FOLDER/access.log has a line for each request: its protocol, method, status and how many
bytes it had.
"""

import pathlib
import subprocess
import sys

from nginx_process import serve
from test_process import end_with_tests

end_with_tests()

folder = pathlib.Path(sys.argv[1]).resolve()
folder.mkdir(parents=True, exist_ok=True)
subprocess.run(
    ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
     "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"],
    check=True, capture_output=True)

serve(folder, lambda port: f"""
    log_format short '$server_protocol $request_method $status $request_length';
    access_log {folder}/access.log short;
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
""")
