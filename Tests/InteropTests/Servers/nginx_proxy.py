"""Runs nginx in front of a server, with TLS, HTTP/2 and buffered request bodies. Prints the port once nginx accepts connections.

Usage: nginx_proxy.py FOLDER UPSTREAM_PORT LARGEST_BODY [OPTIONS]

OPTIONS is a JSON object:
  "streams": true forwards request bodies as they arrive;
  "readTimeout": the number of seconds for which nginx waits for the server (default: 60);
  "bodyTimeout": the number of seconds for which nginx waits for more of a request's body (default: 60);
  "clients": a file with the accepted client certificates; "asks": the value of nginx's ssl_verify_client (default: on);
  "location": the origin that replaces the server's origin in Location headers;
  "secures": true replaces http with https in Location headers;
  "redirect": the origin to which all requests are redirected.

The certificate is FOLDER/certificate.pem, for 127.0.0.1. FOLDER/access.log has one line per request: protocol, method, status, number of received
bytes, connection number, and the result of the client certificate verification.
"""

import json
import pathlib
import subprocess
import sys

from nginx_process import serve
from test_process import end_with_tests

end_with_tests()

folder = pathlib.Path(sys.argv[1]).resolve()
folder.mkdir(parents=True, exist_ok=True)
subprocess.run(
    ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
     "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"],
    check=True, capture_output=True)

options = json.loads(sys.argv[4] if len(sys.argv) > 4 else "{}")
clients = f"""
        ssl_client_certificate {options["clients"]};
        ssl_verify_client {options.get("asks", "on")};
""" if "clients" in options else ""
location = f"proxy_redirect / {options['location']}/;" if "location" in options else ""
if options.get("secures"):
    location = "proxy_redirect http:// https://;"
redirect = f"return 307 {options['redirect']}$request_uri;" if "redirect" in options else ""

serve(folder, lambda port: f"""
    log_format short '$server_protocol $request_method $status $request_length $connection $ssl_client_verify';
    access_log {folder}/access.log short;
    server {{
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {folder}/certificate.pem;
        ssl_certificate_key {folder}/key.pem;
        client_max_body_size {sys.argv[3]};
{clients}
        location / {{
            {redirect}
            {location}
            client_body_timeout {options.get('bodyTimeout', 60)}s;
            proxy_pass http://127.0.0.1:{sys.argv[2]};
            proxy_http_version 1.1;
            proxy_read_timeout {options.get('readTimeout', 60)}s;
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-Proto https;
            proxy_request_buffering {'off' if options.get('streams') else 'on'};
        }}
    }}
""")
