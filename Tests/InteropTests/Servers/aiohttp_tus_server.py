"""Runs the tus server of the package aiohttp-tus. Prints its port once it accepts connections.

Usage: aiohttp_tus_server.py FOLDER PORT [OPTIONS]

OPTIONS is a JSON object with additional arguments for the server, and client_max_size for aiohttp itself.
"""

import json
import pathlib
import socket
import sys

from aiohttp import web
from aiohttp_tus import setup_tus

from request_log import RequestLog
from test_process import end_with_tests

end_with_tests()

folder = pathlib.Path(sys.argv[1])
(folder / "uploads").mkdir(parents=True, exist_ok=True)
log = RequestLog(folder)
options = json.loads(sys.argv[3] if len(sys.argv) > 3 else "{}")


@web.middleware
async def logged(request, handler):
    number = log.begin(request.method, request.path, request.headers)
    try:
        response = await handler(request)
    except web.HTTPException as error:
        log.end(number, error.status, error.headers.get("Upload-Offset"), error.headers.get("Location"))
        raise
    log.end(number, response.status, response.headers.get("Upload-Offset"), response.headers.get("Location"))
    return response


# 1 MiB is aiohttp's default limit.
app = web.Application(middlewares=[logged], client_max_size=options.pop("client_max_size", 1024**2))
setup_tus(app, upload_path=folder / "uploads", upload_url="/files", **options)

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[2])))
listener.listen(64)
print(listener.getsockname()[1], flush=True)
web.run_app(app, sock=listener, print=None, access_log=None, handle_signals=False)
