"""Runs the tus server of the package resumable-upload. Prints its port once it accepts connections.

Usage: resumable_upload_server.py FOLDER PORT [OPTIONS]

OPTIONS is a JSON object with additional arguments for the server.
"""

import http.server
import json
import pathlib
import sys

from resumable_upload import SQLiteStorage, TusServer
from resumable_upload.server import TusHTTPRequestHandler

from request_log import RequestLog
from test_process import end_with_tests

end_with_tests()

folder = pathlib.Path(sys.argv[1])
(folder / "uploads").mkdir(parents=True, exist_ok=True)
log = RequestLog(folder)


class Handler(TusHTTPRequestHandler):
    tus_server = TusServer(
        storage=SQLiteStorage(db_path=str(folder / "uploads.db"), upload_dir=str(folder / "uploads")), base_path="/files",
        **json.loads(sys.argv[3] if len(sys.argv) > 3 else "{}"))

    def parse_request(self):
        self.number = None
        self.logged_response = {}
        if not super().parse_request():
            return False
        self.number = log.begin(self.command, self.path, self.headers)
        return True

    def send_response(self, code, message=None):
        self.logged_response["status"] = code
        super().send_response(code, message)

    def send_header(self, keyword, value):
        if keyword.lower() in ("upload-offset", "location"):
            self.logged_response[keyword.lower()] = str(value)
        super().send_header(keyword, value)

    def end_headers(self):
        if self.number is not None:
            logged = self.logged_response
            log.end(self.number, logged.get("status"), logged.get("upload-offset"), logged.get("location"))
        super().end_headers()

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
