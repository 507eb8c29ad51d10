"""Kills the members of a fleet, suspends them, cuts them off from the database, and restarts PostgreSQL.

Every file must arrive exactly once. If the other members are healthy, they must continue the sessions of a killed member within 30 s.
"""

import glob
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

from relay import Relay
from servers import end_with_parent
from studio import Queue, Studio, digest, write_file

member_count = 3
session_limit = 5
rescue_limit = 30  # In seconds.
faults_per_fleet = 50


def campaign(seed, rounds, seconds, program):
    """Injects `rounds` faults, or faults for half of `seconds`. Returns the anomalies and a line of statistics."""
    studio = Studio("fleet", seed, program, only=["loop", "sftp"])
    for server in studio.servers.values():
        server.relay.rate = 4 << 20
    studio.folder.chmod(0o711)
    begin = time.monotonic()
    end = begin + seconds * 0.5 if seconds else None
    faults, content, sessions, number, rescues = {}, 0, 0, 0, []
    try:
        while (sum(faults.values()) < rounds if rounds else number == 0 or time.monotonic() < end) and len(studio.anomalies) < 100:
            number += 1
            goal = min(faults_per_fleet, rounds - sum(faults.values())) if rounds else faults_per_fleet
            fleet = Fleet(studio, number, random.Random(f"{seed}-{number}"))
            try:
                fleet.begin(6 * goal if rounds else int(seconds))
                fleet.run(goal, end)
            finally:
                fleet.close()
            for kind, count in fleet.faults.items():
                faults[kind] = faults.get(kind, 0) + count
            content, sessions, rescues = content + fleet.bytes, sessions + len(fleet.sessions), rescues + fleet.rescues
            print(f"{sum(faults.values())} faults so far, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    finally:
        wire = sum(server.relay.up for server in studio.servers.values())
        studio.close()
    return studio.anomalies, (
        f"fleet: {faults} in {number} fleets of {member_count} members, {sessions} sessions, {content >> 20} MiB of content,"
        f" {wire >> 20} MiB sent, {len(rescues)} rescues in at most {max(rescues, default=0):.1f} s")


class Database:
    """A PostgreSQL server, which runs as an unprivileged user, because it refuses to run as root. It ends with this process."""

    def __init__(self, folder):
        self.folder = folder
        self.programs = pathlib.Path(sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1])
        self.prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.getuid() == 0 else ["setpriv"]
        folder.mkdir()
        if os.getuid() == 0:
            subprocess.run(["chown", "nobody:nogroup", folder], check=True)
        subprocess.run(
            [*self.prefix, self.programs / "initdb", "-D", folder / "data", "-U", "owner", "--auth=trust", "--no-sync"], check=True, cwd="/",
            stdout=subprocess.DEVNULL)
        self.port = free_port()
        self.start()

    def start(self):
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(
                [*self.prefix, "--pdeathsig=QUIT", self.programs / "postgres", "-D", self.folder / "data", "-k", self.folder, "-p", str(self.port),
                 "-c", "listen_addresses=127.0.0.1"], cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        ready = [self.programs / "pg_isready", "-q", "-h", self.folder, "-p", str(self.port)]
        while subprocess.run(ready).returncode != 0:
            if self.process.poll() is not None:
                raise SystemExit(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-500:]}")
            time.sleep(0.05)

    def stop(self, mode=signal.SIGQUIT):
        self.process.send_signal(mode)
        self.process.wait()

    def query(self, statement):
        """Returns the rows of a query, as lists of texts."""
        words = ["psql", "-h", self.folder, "-p", self.port, "-U", "owner", "-d", "postgres", "-qAtF", "\t", "-c"]
        result = subprocess.run([*map(str, words), f"SET search_path = transferq; {statement}"], stdout=subprocess.PIPE, text=True, check=True)
        return [line.split("\t") for line in result.stdout.splitlines()]


def free_port():
    """Returns a port that the kernel gives to no client, so that it is still free after a restart of the server."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", random.randrange(first // 2, first)))
                return found.getsockname()[1]
            except OSError:
                continue


class Member:
    """A member process with its own relay to the database."""

    def __init__(self, fleet, name):
        self.fleet, self.name = fleet, name
        self.relay = Relay(fleet.studio.loop, fleet.database.port)
        self.start()

    def start(self):
        with open(self.fleet.folder / f"{self.name}.log", "a") as log:
            self.process = subprocess.Popen(
                [self.fleet.studio.program, "--fleet", self.fleet.url(self.relay.port), "agent", "run", "--slots", "2", "--name", self.name,
                 "--store", self.fleet.folder / self.name],
                env={**os.environ, "SSH_AUTH_SOCK": ""}, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=end_with_parent)

    def kill(self):
        if self.process.poll() is not None:
            self.fleet.studio.anomaly(f"the member {self.name} exited with {self.process.returncode}")
        self.process.kill()
        self.process.wait()


class FleetQueue(Queue):
    """Runs commands on the fleet."""

    def __init__(self, studio, number, url):
        super().__init__(studio, number)
        self.url = url

    def environment(self):
        return {**super().environment(), "TRANSFERQ_FLEET": self.url}


class Fleet:
    """A database, its members, and sessions for all faults."""

    def __init__(self, studio, number, draw):
        self.studio, self.draw = studio, draw
        self.number = number
        self.folder = studio.folder / f"fleet-{number}"
        self.folder.mkdir()
        self.folder.chmod(0o711)
        self.faults, self.rescues, self.bytes = {}, [], 0
        self.sessions, self.members = {}, []
        self.files = []  # The kind of the server, the remote name, and the digest of each file.
        self.database = Database(self.folder / "postgresql")

    def begin(self, count):
        """Adds `count` sessions, and starts the members."""
        studio, number = self.studio, self.number
        self.queue = FleetQueue(studio, number, self.url(self.database.port))
        self.queue.succeed("fleet", "init")
        self.queue.add_accounts()
        self.queue.succeed("queue", "set", "--max-sessions", session_limit)
        for index in range(count):
            self.add(f"{number}-{index}")
        self.members = [Member(self, f"m{index}") for index in range(member_count)]

    def url(self, port):
        return f"postgresql://owner@127.0.0.1:{port}/postgres"

    def add(self, name):
        kind = self.draw.choice(["loop", "loop", "sftp"])
        paths = []
        for index in range(self.draw.randint(1, 5)):
            path = self.queue.sources / f"{name}-{index}"
            size = self.draw.choice([32, 5_000, 200_000, 1 << 20, 6 << 20])
            write_file(path, size + self.draw.randrange(size), self.draw)
            self.bytes += path.stat().st_size
            paths.append(path)
            self.files.append((kind, path.name, digest(path)))
        output = self.queue.succeed("--place", "anywhere", "upload", kind, *paths, "--name", name)
        self.sessions[name] = output[0] if output else None

    def run(self, goal, end):
        while sum(self.faults.values()) < goal and not (end and time.monotonic() > end):
            if not self.database.query("SELECT 1 FROM session WHERE state <> 'completed' LIMIT 1"):
                break
            fault = self.draw.choices(["kill", "rescue", "cut", "suspend", "restart"], [10, 2, 5, 3, 1])[0]
            time.sleep(self.draw.uniform(0, 1.5))
            getattr(self, fault)(self.draw.choice(self.members))
            self.faults[fault] = self.faults.get(fault, 0) + 1
            self.check_limit()
        self.complete()

    # Faults

    def kill(self, member):
        member.kill()
        time.sleep(self.draw.choice([0, 0, 1, 8, 18]))
        member.start()

    def rescue(self, member):
        """Kills a member, and waits until other members have taken over its sessions."""
        time.sleep(4)
        member.kill()
        begin = time.monotonic()
        owned = f"SELECT id FROM session WHERE owner = '{member.name}' AND state = 'running'"
        has_sessions = bool(self.database.query(owned))
        while self.database.query(owned):
            if time.monotonic() - begin > rescue_limit:
                self.studio.anomaly(f"the sessions of {member.name} were not continued within {rescue_limit} s")
                break
            time.sleep(0.2)
        if has_sessions:
            self.rescues.append(time.monotonic() - begin)
        member.start()

    def cut(self, member):
        # The relay keeps its port, which another connection could take otherwise.
        member.relay.accept_and_close()
        time.sleep(self.draw.choice([0.1, 2, 8, 20]))
        member.relay.listen()

    def suspend(self, member):
        member.process.send_signal(signal.SIGSTOP)
        time.sleep(self.draw.choice([1, 8, 20]))
        member.process.send_signal(signal.SIGCONT)

    def restart(self, _):
        self.database.stop(self.draw.choice([signal.SIGINT, signal.SIGQUIT]))
        time.sleep(self.draw.uniform(0, 4))
        self.database.start()

    # Checks

    def check_limit(self):
        """The members must never run more sessions than the limit, counted by valid leases."""
        count = int(self.database.query("SELECT count(*) FROM session WHERE owner IS NOT NULL AND lease_until > clock_timestamp()")[0][0])
        if count > session_limit:
            self.studio.anomaly(f"{count} sessions run, but the limit is {session_limit}")

    def complete(self):
        """Waits until all sessions are completed, and checks all files."""
        end = time.monotonic() + 120 + self.bytes / (1 << 20)
        while rows := self.database.query("SELECT draft::json->>'name', state, error FROM session JOIN content ON session = id WHERE state <> 'completed'"):
            if time.monotonic() > end or any(state in ["failed", "cancelled"] for _, state, _ in rows):
                self.studio.anomaly(f"{len(rows)} sessions are not completed: {rows[:5]}")
                break
            time.sleep(0.5)
        names = {each["name"] for each in self.queue.list()}
        for name in self.sessions.keys() - names:
            self.studio.anomaly(f"the session {name} is lost")
        loop = self.studio.servers["loop"].folder / "uploads"
        stored = {}
        for path in loop.rglob("*"):
            if path.is_file():
                stored.setdefault(digest(path), []).append(path)
        for kind, name, expected in self.files:
            if kind == "loop":
                count = len(stored.get(expected, []))
            else:
                path = self.studio.servers["sftp"].folder / "files" / name
                count = int(path.is_file() and digest(path) == expected)
            if count != 1:
                self.studio.anomaly(f"{name} is stored {count} times at {kind}")
        extra = [path.name for path in (self.studio.servers["sftp"].folder / "files").iterdir() if path.name not in {name for _, name, _ in self.files}]
        if extra:
            self.studio.anomaly(f"parts remain at sftp: {extra[:5]}")

    def close(self):
        for member in self.members:
            member.process.kill()
            member.process.wait()
            member.relay.refuse()
        self.database.stop()
        for folder in [self.studio.servers["sftp"].folder / "files", self.studio.servers["loop"].folder / "uploads"]:
            for path in folder.rglob("*"):
                if path.is_file():
                    path.unlink()
