"""Records the requests of a server in FOLDER/requests.jsonl. The file gets one JSON object when the head of a request arrives, and another with
the same number before the response is sent."""

import itertools
import json
import threading


class RequestLog:
    def __init__(self, folder):
        self.file = open(folder / "requests.jsonl", "a", buffering=1)
        self.lock = threading.Lock()
        self.numbers = itertools.count(sum(1 for _ in open(folder / "requests.jsonl")))

    def write(self, fields):
        with self.lock:
            self.file.write(json.dumps(fields) + "\n")

    def begin(self, method, path, headers):
        """Records a request, and returns its number. The headers are a case-insensitive mapping."""
        number = next(self.numbers)
        self.write({
            "number": number, "method": method, "path": path, "offset": headers.get("Upload-Offset"),
            "metadata": headers.get("Upload-Metadata"), "concat": headers.get("Upload-Concat")})
        return number

    def end(self, number, status, offset, location):
        """Records the response to a request."""
        self.write({"number": number, "status": status, "answeredOffset": offset, "location": location})
