"""The real servers of a campaign, each with its own relay."""

import ctypes
import pathlib
import signal
import subprocess
import sys

from relay import Relay

root = pathlib.Path(__file__).resolve().parents[2]
libc = ctypes.CDLL(None)


def end_with_parent():
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Server:
    """One server and its relay. The relay keeps its port when the server restarts."""

    def __init__(self, kind, folder, loop, build):
        self.kind, self.folder, self.build = kind, folder, build
        folder.mkdir(parents=True)
        self.process = None
        self.start()
        self.relay = Relay(loop, self.port)

    def command(self):
        servers = root / "Tests/InteropTests/Servers"
        return {
            "loop": [self.build / "tus-loopback", "--folder", self.folder / "uploads"],
            "tuspy": [root / ".build/servers/bin/python", servers / "tuspyserver_server.py", self.folder, "0"],
            "sftp": [sys.executable, root / "Tests/Benchmarks/Peers/sshd.py", self.folder],
            "put": [sys.executable, servers / "nginx_put.py", self.folder, "1g"],
        }[self.kind]

    def start(self):
        with open(self.folder / "errors.log", "a") as errors:
            self.process = subprocess.Popen(
                [str(each) for each in self.command()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                text=True, preexec_fn=end_with_parent)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.kind} did not start: {(self.folder / 'errors.log').read_text()[-500:]}")
        self.port = int(line.split("/")[2].split(":")[1] if "http" in line else line)
        (self.folder / "files").mkdir(exist_ok=True)
        (self.folder / "uploads").mkdir(exist_ok=True)

    def stop(self, is_forwarded=False):
        """Kills the server and resets its connections, as in a crash.

        is_forwarded: Whether the relay acts as a forwarder on a machine that still runs: it accepts new connections and closes them immediately.
        """
        if is_forwarded:
            self.relay.accept_and_close()
        else:
            self.relay.refuse()
        self.process.kill()
        self.process.wait()

    def restart(self):
        self.start()
        self.relay.target = self.port
        self.relay.listen()

    def address(self, user):
        port = self.relay.port
        return {
            "loop": f"tus+http://127.0.0.1:{port}/files/", "tuspy": f"tus+http://127.0.0.1:{port}/files/",
            "sftp": f"sftp://{user}@127.0.0.1:{port}{self.folder}/files/", "put": f"http+put://127.0.0.1:{port}/{{path}}",
        }[self.kind]
