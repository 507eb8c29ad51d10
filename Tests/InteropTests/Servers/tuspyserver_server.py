"""Runs the tus server of the package tuspyserver. Prints its port once it accepts connections.

Usage: tuspyserver_server.py FOLDER PORT [OPTIONS]

OPTIONS is a JSON object with additional arguments for the server.
"""

import json
import pathlib
import socket
import sys

import uvicorn
from fastapi import FastAPI
from starlette.datastructures import Headers
from tuspyserver import create_tus_router

from request_log import RequestLog
from test_process import end_with_tests

end_with_tests()

folder = pathlib.Path(sys.argv[1])
(folder / "uploads").mkdir(parents=True, exist_ok=True)
log = RequestLog(folder)


class Logged:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        number = log.begin(scope["method"], scope["path"], Headers(scope=scope))

        async def send_logged(message):
            if message["type"] == "http.response.start":
                headers = Headers(raw=message["headers"])
                log.end(number, message["status"], headers.get("Upload-Offset"), headers.get("Location"))
            await send(message)

        await self.app(scope, receive, send_logged)


app = FastAPI()
app.include_router(create_tus_router(
    prefix="files", files_dir=str(folder / "uploads"), **json.loads(sys.argv[3] if len(sys.argv) > 3 else "{}")))

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[2])))
listener.listen(64)
print(listener.getsockname()[1], flush=True)
# By default, uvicorn closes a connection that was idle for 5 s, even if a request is just arriving. The queue would retry after such a failure, but
# some tests make only one attempt.
config = uvicorn.Config(Logged(app), log_level="critical", lifespan="off", timeout_keep_alive=600)
uvicorn.Server(config).run(sockets=[listener])
