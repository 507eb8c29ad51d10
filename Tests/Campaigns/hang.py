"""Uploads files from a file system that stops responding, as a network share does when its server is unavailable."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

from studio import Queue, Studio, digest, write_file

python = "/usr/bin/python3"  # This interpreter has the Python packages of Debian.

# In each round, the next call of this list hangs. `getattr` is the call for stat(2). In the round `all`, every call hangs.
calls = ["all", "getattr", "open", "read", "readdir"]


def campaign(seed, rounds, seconds, program):
    """Runs `rounds` queues, each with a session of files on the share and a session of other files. Without `rounds`, runs one queue for each
    combination of a call that hangs and a transport (SFTP or tus), but starts no further queue once `seconds` have passed.

    The session of other files must complete, a stopped `run` must exit within a minute, and the session of the share's files must complete once the
    share responds again.
    Does nothing if this user can't mount a file system. Returns the anomalies and a line of statistics.
    """
    if subprocess.run([python, "-c", "import fusepy"], capture_output=True).returncode != 0:
        return [], "hang: NOT RUN, because Debian's package python3-fusepy is missing"
    if os.getuid() != 0 or not os.path.exists("/dev/fuse"):
        return [], "hang: NOT RUN, because this user can't mount a file system; run the campaign as root"
    studio = Studio("hang", seed, program, only=["loop", "sftp"])
    exits = []
    try:
        end = time.monotonic() + (seconds or 0)
        for number in range(1, (rounds or 2 * len(calls)) + 1):
            if not rounds and exits and time.monotonic() > end:
                break
            draw = random.Random(f"{seed}-{number}")
            exits.append(one_round(studio, number, calls[number % len(calls)], draw))
    finally:
        studio.close()
    return studio.anomalies, (
        f"hang: {len(exits)} shares hung in {', '.join(calls)}; stopped runs exited after"
        f" {', '.join(f'{each:.1f}' for each in exits)} s")


def one_round(studio, number, call, draw):
    """Returns how long `run` took to exit after the stop request, in seconds."""
    queue = Queue(studio, number)
    queue.add_accounts()
    share = Share(queue.folder)
    try:
        for name in range(3):
            write_file(share.files / "takes" / f"{name}", draw.randrange(1 << 20, 4 << 20), draw)
        write_file(queue.sources / "other", 2 << 20, draw)
        account = ["sftp", "loop"][number // len(calls) % 2]
        [hung] = queue.succeed("add", account, share.mount / "takes", "--to", f"hung-{number}")
        [other] = queue.succeed("add", account, queue.sources / "other", "--to", f"other-{number}")
        share.hang(call)
        run = queue.start("run", "--progress", "none", "--max-sessions", "2")
        wait_until(lambda: state(queue, other) == "completed", 60) or studio.anomaly(
            f"{other} did not complete while the share hung in {call}: {state(queue, other)}")
        if state(queue, hung) == "completed":
            studio.anomaly(f"{hung} completed although its share hangs in {call}")
        begin = time.monotonic()
        run.send_signal(signal.SIGTERM)
        wait_until(lambda: has_exited(run.pid), 60) or studio.anomaly(f"run did not exit while the share hung in {call}")
        took = time.monotonic() - begin
        share.respond()
        queue.finish(run, ["run"], timeout=60)
        queue.succeed("run", "--progress", "none")
        if state(queue, hung) != "completed":
            studio.anomaly(f"{hung} is {state(queue, hung)} after the share responded again")
        if account == "loop":
            return took
        received = studio.servers["sftp"].folder / "files" / f"hung-{number}"
        for name in [str(each) for each in range(3)]:
            found = next((each for each in received.rglob(name) if each.is_file()), None)
            if not found or digest(found) != digest(share.files / "takes" / name):
                studio.anomaly(f"the content of {name} on the server differs from the share's")
        return took
    finally:
        share.close()


def state(queue, session):
    return next((each["state"] for each in queue.list() if each["id"].startswith(session)), None)


def has_exited(pid):
    """Whether a process has exited. The kernel may still wait for a thread whose call the share received, but did not complete."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def wait_until(condition, seconds):
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if condition():
            return True
        time.sleep(0.1)
    return condition()


class Share:
    """A mounted view of a folder.

    A call hangs while the file "hangs" contains the name of the call. All calls hang while the process that serves the view is stopped.
    """

    def __init__(self, folder):
        self.files, self.mount, self.switch = folder / "share", folder / "mount", folder / "hangs"
        self.files.mkdir()
        self.mount.mkdir()
        self.process = subprocess.Popen([python, __file__, self.files, self.mount, self.switch])
        if not wait_until(lambda: os.path.ismount(self.mount), 10):
            raise SystemExit("The file system for the campaign could not be mounted.")

    def hang(self, call):
        if call == "all":
            self.process.send_signal(signal.SIGSTOP)
        else:
            self.switch.write_text(call)

    def respond(self):
        self.process.send_signal(signal.SIGCONT)
        self.switch.unlink(missing_ok=True)

    def close(self):
        self.respond()
        subprocess.run(["umount", "--lazy", self.mount], check=False)
        self.process.terminate()
        self.process.wait()


def serve(files, mount, switch):
    """Mounts `files` at `mount` until this process is terminated."""
    import fusepy

    class Files(fusepy.Operations):
        def __call__(self, call, path, *arguments):
            # The root stays readable, because other programs on the machine also inspect mounts.
            while path != "/" and switch.exists() and switch.read_text() == call:
                time.sleep(0.05)
            return super().__call__(call, path, *arguments)

        def getattr(self, path, handle=None):
            try:
                found = os.lstat(f"{files}{path}")
            except OSError as error:
                raise fusepy.FuseOSError(error.errno)
            return {name: getattr(found, name) for name in dir(found) if name.startswith("st_") and not name.endswith("_ns")}

        def readdir(self, path, handle):
            return [".", "..", *os.listdir(f"{files}{path}")]

        def open(self, path, flags):
            return os.open(f"{files}{path}", flags & ~os.O_CREAT)

        def read(self, path, size, offset, handle):
            return os.pread(handle, size, offset)

        def release(self, path, handle):
            os.close(handle)

    # Disable caching, so that each call of a program reaches this process.
    fusepy.FUSE(Files(), str(mount), foreground=True, attr_timeout=0, entry_timeout=0, direct_io=True, ro=True, use_ino=True)


if __name__ == "__main__":
    serve(*map(pathlib.Path, sys.argv[1:4]))
