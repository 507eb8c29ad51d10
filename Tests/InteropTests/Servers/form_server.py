"""Runs a Flask application that receives files in forms. Prints its port once it accepts connections.

Usage: form_server.py FOLDER LARGEST_BODY

POST /upload?path=NAME stores the form's last file as FOLDER/files/HEX, where HEX is NAME in hexadecimal with a slash
after every 100 bytes, and responds with a JSON description of the form.
POST /page does the same, and redirects to /page/done.
POST /parts responds with a JSON list of all parts of the form, in their order.
POST /slow reads 1 MiB every tenth of a second, and responds three seconds after the end of the body.
POST /refused responds with an error before it reads the form.
POST /hasty responds with success before it reads the form.
"""

import hashlib
import json
import pathlib
import sys
import textwrap
import time
import urllib.parse
import uuid

from flask import Flask, redirect, request
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder
from werkzeug.serving import WSGIRequestHandler, make_server

from test_process import end_with_tests

end_with_tests()

folder = pathlib.Path(sys.argv[1]).resolve() / "files"
folder.mkdir(parents=True, exist_ok=True)

app = Flask(__name__)
app.config["MAX_CONTENT_LENGTH"] = int(sys.argv[2])


def store_files():
    name = urllib.parse.unquote_to_bytes(request.query_string.split(b"path=", 1)[-1])
    files = [(field, file) for field, file in request.files.items(multi=True)]
    response = {"fields": request.form.to_dict(), "length": request.content_length, "files": []}
    for field, file in files:
        content = file.stream.read()
        # Rename each file when it is complete, so that incomplete files are never visible.
        temporary = folder.parent / str(uuid.uuid4())
        temporary.write_bytes(content)
        path = folder.joinpath(*textwrap.wrap(name.hex() or "none", 200))
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.rename(path)
        response["files"].append({
            "field": field, "name": file.filename, "type": file.content_type, "sha256": hashlib.sha256(content).hexdigest(),
            "length": len(content)})
    return json.dumps(response), 201, {"Content-Type": "application/json"}


@app.post("/upload")
def upload():
    return store_files()


@app.post("/page")
def page():
    store_files()
    return redirect("/page/done", 303)


@app.post("/parts")
def parts():
    decoder = MultipartDecoder(parse_options_header(request.content_type)[1]["boundary"].encode())
    found = []
    digest = hashlib.sha256()
    while True:
        event = decoder.next_event()
        if isinstance(event, Epilogue):
            return {"length": request.content_length, "parts": found}, 201
        if isinstance(event, (Field, File)):
            digest = hashlib.sha256()
            found.append({"field": event.name, "name": getattr(event, "filename", None), "type": event.headers.get("Content-Type"),
                          "length": 0, "text": ""})
        elif isinstance(event, Data):
            part = found[-1]
            digest.update(event.data)
            part["length"] += len(event.data)
            part["sha256"] = digest.hexdigest()
            if part["name"] is None:
                part["text"] += event.data.decode()
        else:
            # The decoder needs more bytes. None is the end of the body.
            decoder.receive_data(request.stream.read(1 << 16) or None)


@app.post("/slow")
def slow():
    length = 0
    while data := request.stream.read(1 << 20):
        length += len(data)
        time.sleep(0.1)
    time.sleep(3)
    return {"length": length}, 201


@app.post("/refused")
def refused():
    return {"error": "no reels on Sundays"}, 403


@app.post("/hasty")
def hasty():
    return {"done": True}, 201


class Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *arguments):
        pass


server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Handler)
print(server.port, flush=True)
server.serve_forever()
