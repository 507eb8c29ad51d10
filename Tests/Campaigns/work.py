"""The sessions of a campaign, and the final checks."""

import json
import shutil
import urllib.request

from studio import digest, write_file

names = ["plain", "two words", "ünïcode", "line\nbreak", "%41+b", "-dash", "q?h#", "x" * 200]
maximum_duplicates = 64  # The maximum number of small files that are sent again after a kill, according to the article Durability.


class Session:
    """A session of a queue, with the original files and the expected outcome."""

    def __init__(self, work, account, name, is_download=False):
        self.work, self.account, self.name, self.is_download = work, account, name, is_download
        self.files = {}  # The path and the digest of each original file, by the name of the destination.
        self.paths = []  # The files and folders to add, relative to the session's folder.
        self.id = None
        self.parallel = work.draw.choice([None, None, 4])
        self.bytes = 0
        # The expected final state: "completed"; "removed" after `remove`; "cancelled" after `cancel`; "any" if the outcome of a command
        # is unknown.
        self.ends_as = "completed"

    def file(self, name, size):
        """Creates a file with random content, and adds it to the session."""
        work = self.work
        path = work.queue.sources / self.name / name
        write_file(path, size, work.draw)
        self.files[name] = (path, digest(path))
        work.bytes += size
        self.bytes += size
        first = name.split("/")[0]
        if first not in self.paths:
            self.paths.append(first)

    def arguments(self):
        """Returns the command that adds the session. For a download, first copies the files to the server."""
        options = ["add", self.account, *([] if self.is_download else [self.work.queue.sources / self.name / p for p in self.paths])]
        folder = f"{self.work.remote_folder}/{self.name}"
        if not self.is_download:
            # A tus server has no folders. On the other servers, each session has its own folder.
            options += [] if self.account in ["loop", "tuspy"] else ["--to", folder]
        else:
            (self.work.queue.downloads / self.name).mkdir()
            options += [*self.remote_paths(), "--download", "--to", self.work.queue.downloads / self.name]
        options += ["--parallel", self.parallel] if self.parallel else []
        return [*options, "--name", self.name]

    def remote_paths(self):
        """Copies the source files of a download to the server, and returns their remote paths."""
        server = self.work.studio.servers[self.account]
        if self.account == "loop":
            (name, (path, _)), = self.files.items()
            request = urllib.request.Request(
                f"http://127.0.0.1:{server.port}/files/", path.read_bytes(), method="POST", headers={
                    "Tus-Resumable": "1.0.0", "Upload-Length": str(path.stat().st_size),
                    "Content-Type": "application/offset+octet-stream"})
            location = urllib.request.urlopen(request).headers["Location"].split("/")[-1]
            self.files = {location: self.files[name]}
            return [location]
        folder = server.folder / "files" / f"{self.work.remote_folder}-out" / self.name
        shutil.copytree(self.work.queue.sources / self.name, folder)
        return [f"{self.work.remote_folder}-out/{self.name}/{path}" for path in self.paths]


class Work:
    """Sessions of all kinds for one queue.

    scale: A factor for the sizes of large files.
    small: A factor for the number of small files.
    """

    def __init__(self, queue, draw, scale=1.0, small=1.0):
        self.queue, self.draw, self.studio = queue, draw, queue.studio
        self.remote_folder = f"place-{queue.number}"
        self.sessions, self.bytes = [], 0
        self.added = 0
        self.scale, self.small = scale, small

    def large(self, low, high):
        """Returns a random size in bytes: between `low` and `high` MiB, multiplied by `scale`."""
        return int(self.draw.uniform(low, high) * self.scale * (1 << 20))

    def count(self, number):
        return max(1, int(number * self.small))

    def new(self, account, is_download=False):
        session = Session(self, account, f"s{len(self.sessions)}-{account}-{'down' if is_download else 'up'}", is_download)
        self.sessions.append(session)
        return session

    def make(self):
        """Creates the sessions and their files, without adding them to the queue."""
        draw = self.draw
        for account in self.studio.servers:
            self.new(account).file("reel", self.large(6, 20) if account != "tuspy" else self.large(2, 6))
            folder = self.new(account)
            for index in range(self.count(40 if account != "tuspy" else 10)):
                folder.file(f"day/{draw.choice(['', 'a/', 'b/c/'])}{index}-{draw.choice(names)}", int(2 ** draw.uniform(0, 16)) - 1)
            mixed = self.new(account)
            for index in range(3):
                mixed.file(f"clip{index}", self.large(0.1, 2))
            for index in range(self.count(5)):
                mixed.file(f"note{index}", draw.randrange(0, 3000))
            if account != "tuspy":
                self.new(account, is_download=True).file("reel", self.large(6, 20))
            if account in ["sftp", "put"]:
                several = self.new(account, is_download=True)
                for index in range(self.count(12)):
                    several.file(f"still{index}", draw.randrange(0, 60_000))
        draw.shuffle(self.sessions)

    def add(self):
        for session in self.sessions:
            session.id = (self.queue.succeed(*session.arguments()) or [None])[0]

    # Checks

    def check(self, kills=0, allows_failures=False):
        """Checks the sessions, their files and the storage folder after the last run."""
        anomaly = self.studio.anomaly
        listed = self.queue.list()
        by_id = {each["id"]: each for each in listed}
        if len(by_id) != len(listed):
            anomaly("a session is listed twice")
        known = {session.id for session in self.sessions}
        for each in listed:
            if each["id"] not in known:
                anomaly(f"the queue contains a session that was never added: {each}")
        for session in self.sessions:
            shown = by_id.get(session.id)
            state = shown["state"] if shown else "removed"
            if session.ends_as not in ["any", state]:
                anomaly(f"{session.name} is {state}, not {session.ends_as}: {shown and (shown['why'], shown['error'])}")
            elif state == "completed":
                self.check_content(session)
        self.check_destinations(kills)
        self.check_store()

    def check_order(self, moved):
        """Checks that sessions are in the order in which they were added, except for the sessions that a command moved."""
        order = [each["id"] for each in self.queue.list() if each["id"] not in moved]
        wanted = [each.id for each in self.sessions if each.id in set(order)]
        if order != wanted:
            self.studio.anomaly(f"the order is {order}, not {wanted}")

    def check_content(self, session):
        for name, path in self.destinations(session).items():
            if not path or not path.exists():
                self.studio.anomaly(f"{session.name} completed without {name!r}")
            elif digest(path) != session.files[name][1]:
                self.studio.anomaly(
                    f"{session.name} completed with different content in {name!r}: {path.stat().st_size} bytes at {path},"
                    f" {session.files[name][0].stat().st_size} in the original {session.files[name][0]}")

    def destinations(self, session):
        server = self.studio.servers[session.account]
        if session.is_download:
            return {name: self.queue.downloads / session.name / name for name in session.files}
        if session.account in ["sftp", "put"]:
            return {name: server.folder / "files" / self.remote_folder / session.name / name for name in session.files}
        suffix = ".bin" if session.account == "loop" else ""
        items = {each["destination"]: each["remoteURL"] for each in self.queue.show(session.id)["items"]}
        return {
            name: items.get(name) and server.folder / "uploads" / (items[name].split("/")[-1] + suffix) for name in session.files}

    def check_destinations(self, kills):
        """Checks that the destinations contain the files of the sessions, but no part files and no other files.

        On tus servers, permits the duplicates that the documentation permits.
        """
        for session in self.sessions:
            if session.account not in ["sftp", "put"] and not session.is_download:
                continue
            wanted = set(self.destinations(session).values())
            folder = (self.queue.downloads if session.is_download else
                      self.studio.servers[session.account].folder / "files" / self.remote_folder) / session.name
            unexpected = [each for each in folder.rglob("*") if each.is_file() and each not in wanted]
            if unexpected:
                self.studio.anomaly(
                    f"{session.name} ({session.ends_as}) left {len(unexpected)} unexpected files, such as {unexpected[:5]}")
        for account in {"loop", "tuspy"} & set(self.studio.servers):
            self.check_uploads(account, kills)

    def check_uploads(self, account, kills):
        """Checks that a tus server has only one copy of each large file, and not too many duplicates of small files.

        The articles Durability and Queue semantics document the permitted number of duplicates.
        """
        folder = self.studio.servers[account].folder / "uploads"
        ids = {session.id: session for session in self.sessions}
        complete, partial = {}, []
        for path in folder.glob("*.json" if account == "loop" else "*.info"):
            info = json.loads(path.read_text() or "{}")
            key = (info.get("metadata") or {}).get("transferid", "")
            if key[:36] not in ids:
                continue
            content = path.with_suffix(".bin" if account == "loop" else "")
            size = info.get("length" if account == "loop" else "size")
            offset = content.stat().st_size if content.exists() else 0
            if offset == size:
                complete.setdefault(key, []).append(size)
            elif offset:
                partial.append((ids[key[:36]], key, offset, size))
        # Files that were sent in segments may also exist twice: TransferKit repeats the request that concatenates the segments if no
        # response arrives.
        duplicates = [sizes[0] for key, sizes in complete.items() if len(sizes) > 1 and not ids[key[:36]].parallel]
        if sum(len(sizes) - 1 for sizes in complete.values()) > maximum_duplicates * kills or any(size > 1 << 20 for size in duplicates):
            self.studio.anomaly(f"{account} has duplicate files of these sizes after {kills} kills: {duplicates}")
        for session, key, offset, size in partial:
            if size > 1 << 20 and session.ends_as == "completed":
                self.studio.anomaly(f"{account} keeps {offset} of {size} bytes of {key}, although {session.name} is complete")

    def check_store(self):
        status, output, diagnostics = self.queue.run("doctor")
        if status != 0:
            self.studio.anomaly(f"doctor exited with {status}: {output} {diagnostics[-500:]}")
        unexpected = [
            each for each in self.queue.store.rglob("*")
            if each.is_file() and each.name not in ["owner.lock", "queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm"]]
        if unexpected:
            self.studio.anomaly(f"the storage folder contains unexpected files: {unexpected}")

    def restore(self):
        """Resumes paused sessions, releases held sessions, and retries failed sessions. Returns the names and errors of the failed sessions."""
        failed = []
        for each in self.queue.list():
            if each["state"] == "paused":
                self.queue.run("resume", each["id"])
            elif each["state"] == "held":
                self.queue.run("release", each["id"])
            elif each["state"] == "failed":
                failed.append((each["name"], each["error"]))
                self.queue.run("retry", each["id"])
        return failed

    def clean(self):
        """Removes the files of the queue and its uploads on the servers, unless an anomaly was reported."""
        if self.studio.anomalies:
            return
        shutil.rmtree(self.queue.folder, ignore_errors=True)
        for server in self.studio.servers.values():
            for folder in (server.folder / "files").glob(f"{self.remote_folder}*"):
                shutil.rmtree(folder, ignore_errors=True)
            if server.kind in ["loop", "tuspy"]:
                for path in (server.folder / "uploads").iterdir():
                    if path.is_file():
                        path.unlink()
