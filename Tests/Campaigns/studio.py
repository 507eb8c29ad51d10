"""The servers of a campaign, and queues with an account for each server."""

import getpass
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

from relay import start_loop
from servers import Server, root

kinds = ["loop", "tuspy", "sftp", "put"]
downloads = None  # The folder for the downloads of all queues. If None, each queue stores its downloads in its own folder.


class Studio:
    """The servers and the folder of one campaign. Prints each reported anomaly immediately, with the seed of the campaign."""

    def __init__(self, name, seed, program=None, only=None):
        self.name, self.seed = name, seed
        self.build = root / ".build/debug"
        self.program = pathlib.Path(program) if program else self.build / "transferq"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"campaign-{name}-"))
        self.loop = start_loop()
        self.servers = {kind: Server(kind, self.folder / kind, self.loop, self.build) for kind in only or kinds}
        self.anomalies = []
        self.commands = 0

    def anomaly(self, text):
        self.anomalies.append(text)
        print(f"ANOMALY in {self.name}, seed {self.seed}: {text}", flush=True)

    def close(self):
        for server in self.servers.values():
            server.process.kill()
            server.process.wait()
        if not self.anomalies:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            print(f"The files of {self.name} are kept in {self.folder}", flush=True)


class Queue:
    """One storage folder, with a folder for sources and a folder for downloads."""

    def __init__(self, studio, number, store=None, received=None):
        self.studio, self.number = studio, number
        self.folder = studio.folder / f"queue-{number}"
        self.sources = self.folder / "sources"
        self.downloads = received or (downloads / f"{studio.name}-{number}" if downloads else self.folder / "downloads")
        self.store = store or self.folder / "store"
        self.sources.mkdir(parents=True)
        self.downloads.mkdir(exist_ok=True)

    def environment(self):
        return {**os.environ, "TRANSFERQ_STORE": str(self.store), "SSH_AUTH_SOCK": ""}

    def start(self, *arguments, log=None):
        """Starts a command."""
        self.studio.commands += 1
        return subprocess.Popen(
            [self.studio.program, *map(str, arguments)], env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=log or subprocess.PIPE, text=True, errors="surrogateescape")

    def finish(self, process, arguments=(), timeout=240):
        """Waits for a command to exit. Reports a crash or a hang as an anomaly. Returns the exit code, the output and the diagnostics."""
        try:
            output, diagnostics = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            states = [(each["name"], each["state"], each["why"]) for each in self.list() if each["state"] != "completed"]
            process.kill()
            output, diagnostics = process.communicate()
            self.studio.anomaly(f"{arguments} did not end within {timeout} s: {states[:5]}; {(diagnostics or '')[-500:]}")
            return -9, output, diagnostics or ""
        if process.returncode < 0 or process.returncode >= 128 and process.returncode != 130:
            self.studio.anomaly(f"{arguments} crashed with {process.returncode}: {(diagnostics or '')[-2000:]}")
        return process.returncode, output, diagnostics or ""

    def run(self, *arguments, timeout=240):
        return self.finish(self.start(*arguments), arguments, timeout)

    def succeed(self, *arguments):
        """Runs a command that must succeed. Returns the words of its output."""
        status, output, diagnostics = self.run(*arguments)
        if status != 0:
            self.studio.anomaly(f"{arguments} exited with {status}: {diagnostics[-1000:]}")
        return output.split()

    def list(self):
        status, output, diagnostics = self.run("list", "--json")
        if status != 0:
            self.studio.anomaly(f"list exited with {status}: {diagnostics[-1000:]}")
        return [json.loads(line) for line in output.splitlines()]

    def show(self, session):
        return json.loads(self.run("show", session, "--json")[1])

    def add_accounts(self):
        for kind, server in self.studio.servers.items():
            options = [] if kind == "put" else ["--setting", "parallelThreshold=1048576"]
            if kind == "sftp":
                options += ["--identity", server.folder / "key", "--known-hosts", self.folder / "hosts", "--host-key", "accept-new"]
            self.succeed("account", "add", kind, server.address(getpass.getuser()), *options)


def write_file(path, size, draw):
    """Writes a file of random content, in blocks of 1 MiB."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        while size > 0:
            file.write(draw.randbytes(min(size, 1 << 20)))
            size -= 1 << 20


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
