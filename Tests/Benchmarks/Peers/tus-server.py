"""Runs tuspyserver, a common tus server, with uvicorn. Prints its port once it listens. Usage: tus-server.py FOLDER"""

import socket
import sys

import uvicorn
from fastapi import FastAPI
from tuspyserver import create_tus_router

app = FastAPI()
app.include_router(create_tus_router(prefix="files", files_dir=sys.argv[1]))
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", timeout_keep_alive=600)).run(sockets=[listener])
