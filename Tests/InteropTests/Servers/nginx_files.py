"""Runs nginx, which serves the files of a folder. Prints the port once nginx accepts connections.

Usage: nginx_files.py FOLDER [CONNECTIONS [RATE]]

The files are in FOLDER/files. FOLDER/access.log has one line per request: method, status, range, number of content bytes sent, and connection number.
CONNECTIONS is the maximum number of requests that nginx serves in parallel; nginx refuses further requests. RATE limits each response, in bytes per
second.
"""

import pathlib
import sys

from nginx_process import serve
from test_process import end_with_tests

end_with_tests()

folder = pathlib.Path(sys.argv[1]).resolve()
(folder / "files").mkdir(parents=True, exist_ok=True)

limits = f"limit_conn clients {sys.argv[2]};" if len(sys.argv) > 2 else ""
limits += f"limit_rate {sys.argv[3]};" if len(sys.argv) > 3 else ""

serve(folder, lambda port: f"""
    log_format short '$request_method $status $http_range $body_bytes_sent $connection';
    limit_conn_zone $binary_remote_addr zone=clients:1m;
    access_log {folder}/access.log short;
    server {{
        listen 127.0.0.1:{port};
        root {folder}/files;
        {limits}
    }}
""")
