"""Runs nginx, which receives files by PUT and serves them. Prints the port once nginx accepts connections.

Usage: nginx_put.py FOLDER LARGEST_BODY

The files are in FOLDER/files. FOLDER/access.log has one line per request: method, status and number of received bytes.
"""

import pathlib
import sys

from nginx_process import serve
from test_process import end_with_tests

end_with_tests()

folder = pathlib.Path(sys.argv[1]).resolve()
(folder / "files").mkdir(parents=True, exist_ok=True)

serve(folder, lambda port: f"""
    log_format short '$request_method $status $request_length';
    access_log {folder}/access.log short;
    server {{
        listen 127.0.0.1:{port};
        root {folder}/files;
        client_max_body_size {sys.argv[2]};
        location / {{
            dav_methods PUT;
            create_full_put_path on;
        }}
    }}
""")
