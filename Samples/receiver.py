"""Receives files for the samples, on a free port of this machine. Needs only Python.

Usage: receiver.py FOLDER

PUT /NAME stores the body as FOLDER/NAME. If the body's length is unknown, the receiver prints a line when the first bytes arrive. POST
stores the files of a form under their names, and responds with JSON that lists the fields and files.
"""

import email.parser
import email.policy
import http.server
import json
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        self.store(self.path, self.body())
        self.respond(201, b"")

    def do_POST(self):
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        form = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + self.body())
        response = {"fields": {}, "files": []}
        for part in form.iter_parts():
            field, name = part.get_param("name", header="content-disposition"), part.get_filename()
            content = part.get_payload(decode=True)
            if name is None:
                response["fields"][field] = content.decode()
            else:
                self.store(name, content)
                response["files"].append({"field": field, "name": name, "type": part.get_content_type(), "length": len(content)})
        self.respond(201, json.dumps(response).encode())

    def store(self, name, content):
        (folder / pathlib.PurePosixPath(name).name).write_bytes(content)

    def body(self):
        """Returns the body, whose length is announced (Content-Length) or unknown (chunks)."""
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        content = b""
        while size := int(self.rfile.readline(), 16):
            if not content:
                print(f"receiving {self.path}", flush=True)
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def respond(self, status, content):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
server.serve_forever()
