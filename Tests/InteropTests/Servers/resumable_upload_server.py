"""Runs the tus server of the package resumable-upload, and writes down what it was asked.

Usage: resumable_upload_server.py FOLDER PORT [OPTIONS]

OPTIONS is a JSON object of further arguments for the server.

Prints its port when it listens. Appends a JSON object to FOLDER/requests.jsonl when the head of a request arrived, and another one, of the same
number, before its answer goes out.
"""

import http.server
import itertools
import json
import pathlib
import sys
import threading

from resumable_upload import SQLiteStorage, TusServer
from resumable_upload.server import TusHTTPRequestHandler

folder = pathlib.Path(sys.argv[1])
(folder / "uploads").mkdir(parents=True, exist_ok=True)
log = open(folder / "requests.jsonl", "a", buffering=1)
log_lock = threading.Lock()
numbers = itertools.count(sum(1 for _ in open(folder / "requests.jsonl")))


def write(entry):
    with log_lock:
        log.write(json.dumps(entry) + "\n")


class Handler(TusHTTPRequestHandler):
    tus_server = TusServer(
        storage=SQLiteStorage(db_path=str(folder / "uploads.db"), upload_dir=str(folder / "uploads")), base_path="/files",
        **json.loads(sys.argv[3] if len(sys.argv) > 3 else "{}"))

    def parse_request(self):
        self.number = None
        self.answer = {}
        if not super().parse_request():
            return False
        self.number = next(numbers)
        write({
            "number": self.number, "method": self.command, "path": self.path, "offset": self.headers.get("Upload-Offset"),
            "metadata": self.headers.get("Upload-Metadata"), "concat": self.headers.get("Upload-Concat")})
        return True

    def send_response(self, code, message=None):
        self.answer["status"] = code
        super().send_response(code, message)

    def send_header(self, keyword, value):
        if keyword.lower() in ("upload-offset", "location"):
            self.answer[keyword.lower()] = str(value)
        super().send_header(keyword, value)

    def end_headers(self):
        if self.number is not None:
            write({
                "number": self.number, "status": self.answer.get("status"), "answeredOffset": self.answer.get("upload-offset"),
                "location": self.answer.get("location")})
        super().end_headers()

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
