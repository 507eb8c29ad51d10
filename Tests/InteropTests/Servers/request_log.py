"""Writes down what a server was asked: a JSON object in FOLDER/requests.jsonl when the head of a request arrived, and another one, of the same
number, before its answer goes out."""

import itertools
import json
import threading


class RequestLog:
    def __init__(self, folder):
        self.file = open(folder / "requests.jsonl", "a", buffering=1)
        self.lock = threading.Lock()
        self.numbers = itertools.count(sum(1 for _ in open(folder / "requests.jsonl")))

    def write(self, entry):
        with self.lock:
            self.file.write(json.dumps(entry) + "\n")

    def begin(self, method, path, headers):
        """Notes a request; returns its number. The headers are a mapping that ignores case."""
        number = next(self.numbers)
        self.write({
            "number": number, "method": method, "path": path, "offset": headers.get("Upload-Offset"),
            "metadata": headers.get("Upload-Metadata"), "concat": headers.get("Upload-Concat")})
        return number

    def answered(self, number, status, offset, location):
        self.write({"number": number, "status": status, "answeredOffset": offset, "location": location})
