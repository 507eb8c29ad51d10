"""Runs nginx that gives the files of a folder. Prints its port when it listens.

Usage: nginx_files.py FOLDER

The files are those in FOLDER/files. FOLDER/access.log has a line for each request: its method, status, range and how many bytes of content were
sent.
"""

import pathlib
import sys

from nginx_process import serve
from test_process import end_with_tests

end_with_tests()

folder = pathlib.Path(sys.argv[1]).resolve()
(folder / "files").mkdir(parents=True, exist_ok=True)

serve(folder, lambda port: f"""
    log_format short '$request_method $status $http_range $body_bytes_sent';
    access_log {folder}/access.log short;
    server {{
        listen 127.0.0.1:{port};
        root {folder}/files;
    }}
""")
