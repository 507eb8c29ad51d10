"""Kills the members of a fleet, suspends them, cuts them off from the database, and restarts PostgreSQL or fails it over to a standby server.

Every file must arrive exactly once. The members must take the sessions in order, and never run more sessions than the limit. If the other members
are healthy, they must continue the sessions of a killed member within 30 s.
"""

import glob
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from relay import Relay
from servers import end_with_parent
from studio import Queue, Studio, digest, write_file

member_count = 3
session_limit = 5
rescue_limit = 30  # In seconds.
server_rate = 2 << 20  # The limit of the path to each server, in bytes per second.
checkpoint_interval = 5  # In seconds.
faults_per_fleet = 200
sessions_per_fleet = 500


def campaign(seed, rounds, seconds, program):
    """Injects `rounds` faults, or faults for half of `seconds`. Returns the anomalies and a line of statistics."""
    studio = Studio("fleet", seed, program, only=["loop", "sftp"])
    for server in studio.servers.values():
        server.relay.rate = server_rate
    studio.folder.chmod(0o711)
    begin = time.monotonic()
    end = begin + seconds * 0.5 if seconds else None
    faults, content, sessions, number, rescues, most, outages = {}, 0, 0, 0, [], 0, []
    try:
        while (sum(faults.values()) < rounds if rounds else number == 0 or time.monotonic() < end) and len(studio.anomalies) < 100:
            number += 1
            goal = min(faults_per_fleet, rounds - sum(faults.values())) if rounds else faults_per_fleet
            fleet = Fleet(studio, number, random.Random(f"{seed}-{number}"))
            try:
                fleet.begin(sessions_per_fleet * goal // faults_per_fleet if rounds else int(seconds))
                fleet.run(goal, end)
            finally:
                fleet.close()
            for kind, count in fleet.faults.items():
                faults[kind] = faults.get(kind, 0) + count
            content, sessions, rescues = content + fleet.bytes, sessions + len(fleet.sessions), rescues + fleet.rescues
            most, outages = max(most, fleet.view.most), outages + fleet.outages
            print(f"{sum(faults.values())} faults so far, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
        # After a fault, members resend at most the content since the last checkpoints. The factor 1.02 covers the protocols' overhead.
        wire = sum(server.relay.up for server in studio.servers.values())
        resend_limit = len(studio.servers) * server_rate * checkpoint_interval
        if wire > content * 1.02 + sum(faults.values()) * resend_limit:
            studio.anomaly(f"{wire} bytes were sent for {content} bytes of content, more than {resend_limit} bytes again for each fault")
    finally:
        studio.close()
    return studio.anomalies, (
        f"fleet: {faults} in {number} fleets of {member_count} members, {sessions} sessions, {content >> 20} MiB of content,"
        f" {wire >> 20} MiB sent, {len(rescues)} rescues in at most {max(rescues, default=0):.1f} s, {len(outages)} commands during an outage in"
        f" at most {max(outages, default=0):.1f} s, at most {most} of {session_limit} sessions at the same time according to the servers")


class Database:
    """A PostgreSQL server. Runs as an unprivileged user, because PostgreSQL refuses to run as root. Ends with this process.

    primary: The server whose changes this standby server receives; None for a primary server.
    """

    def __init__(self, folder, primary=None):
        self.folder = folder
        self.programs = pathlib.Path(sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1])
        self.prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.getuid() == 0 else ["setpriv"]
        folder.mkdir()
        if os.getuid() == 0:
            subprocess.run(["chown", "nobody:nogroup", folder], check=True)
        self.port = free_port()
        if primary:
            self.follow(primary)
        else:
            self.call("initdb", "-D", folder / "data", "-U", "owner", "--auth=trust", "--no-sync")
            self.start()

    def call(self, program, *arguments):
        command = [*self.prefix, self.programs / program, *arguments]
        result = subprocess.run([str(each) for each in command], cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if result.returncode != 0:
            raise SystemExit(f"{program} failed: {result.stdout[-500:]}")

    def follow(self, primary):
        """Becomes the standby server of another server, which then waits for this one at each commit (synchronous_standby_names)."""
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        self.call("pg_basebackup", "-h", primary.folder, "-p", primary.port, "-U", "owner", "-D", self.folder / "data", "-R", "--no-sync", "--checkpoint=fast")
        self.start()
        while primary.query("SELECT state FROM pg_stat_replication") != [["streaming"]]:
            time.sleep(0.05)
        primary.set_synchronous("*")

    def promote(self):
        # This server has copied the former primary server's setting to wait for a standby server at each commit.
        self.call("pg_ctl", "promote", "-w", "-D", self.folder / "data")
        self.set_synchronous("")

    def set_synchronous(self, names):
        self.query(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'", path=False)
        self.query("SELECT pg_reload_conf()")

    def start(self):
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(
                [*self.prefix, "--pdeathsig=QUIT", self.programs / "postgres", "-D", self.folder / "data", "-k", self.folder, "-p", str(self.port),
                 "-c", "listen_addresses=127.0.0.1", "-c", "wal_retrieve_retry_interval=200ms"], cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        ready = [self.programs / "pg_isready", "-q", "-h", self.folder, "-p", str(self.port)]
        while subprocess.run(ready).returncode != 0:
            if self.process.poll() is not None:
                raise SystemExit(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-500:]}")
            time.sleep(0.05)

    def stop(self, mode=signal.SIGQUIT):
        self.process.send_signal(mode)
        self.process.wait()

    def query(self, statement, path=True):
        """Returns the rows of a query, as lists of texts. With `path`, the tables of the fleet need no schema."""
        words = ["psql", "-h", self.folder, "-p", self.port, "-U", "owner", "-d", "postgres", "-qAtF", "\t", "-c"]
        statement = f"SET search_path = transferq; {statement}" if path else statement
        result = subprocess.run([*map(str, words), statement], stdout=subprocess.PIPE, text=True, check=True)
        return [line.split("\t") for line in result.stdout.splitlines()]


def free_port():
    """Returns a free port that the kernel does not assign to clients, so that the port is still free after the server restarts."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", random.randrange(first // 2, first)))
                return found.getsockname()[1]
            except OSError:
                continue


class Member:
    """A member process with its own relay to each database server."""

    def __init__(self, fleet, name):
        self.fleet, self.name = fleet, name
        self.relays = [Relay(fleet.studio.loop, each.port) for each in (fleet.database, fleet.standby)]
        self.start()

    def start(self):
        with open(self.fleet.folder / f"{self.name}.log", "a") as log:
            self.process = subprocess.Popen(
                [self.fleet.studio.program, "--fleet", self.fleet.url(each.port for each in self.relays), "agent", "run", "--slots", "2", "--name", self.name,
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


class ServersView:
    """Counts the sessions whose files grow on the servers at the same time."""

    interval = 0.1

    def __init__(self, fleet):
        self.fleet, self.most, self.names, self.is_ended = fleet, 0, {}, False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def session(self, path):
        """The number of the session to which a file or a part file belongs, as text; None if it is unknown."""
        if path not in self.names:
            name = path.name
            if path.suffix == ".bin":
                try:
                    name = json.loads(path.with_suffix(".json").read_text())["metadata"].get("filename", "")
                except (OSError, ValueError, KeyError):
                    return None
            found = re.search(rf"{self.fleet.number}-(\d+)-\d", name)
            self.names[path] = found and found[1]
        return self.names[path]

    def run(self):
        sizes, grown = {}, [set(), set()]
        while not self.is_ended:
            time.sleep(self.interval)
            current = set()
            for folder in self.fleet.folders():
                for entry in os.scandir(folder):
                    try:
                        size = entry.stat().st_size
                    except OSError:
                        continue
                    path = pathlib.Path(entry.path)
                    if path.suffix != ".json" and size > sizes.get(path, 0) and (session := self.session(path)):
                        current.add(session)
                    sizes[path] = size
            # A session that sent before and after an interval was active during the whole interval.
            active = grown[0] & current
            self.most = max(self.most, len(active))
            if len(active) > session_limit:
                self.fleet.studio.anomaly(f"the servers receive {len(active)} sessions, but the limit is {session_limit}: {active}")
            grown = [grown[1], current]

    def end(self):
        self.is_ended = True
        self.thread.join()


class Fleet:
    """One fleet: a database server with a standby server, the members, and enough sessions for all faults."""

    def __init__(self, studio, number, draw):
        self.studio, self.draw = studio, draw
        self.number = number
        self.folder = studio.folder / f"fleet-{number}"
        self.folder.mkdir()
        self.folder.chmod(0o711)
        self.faults, self.rescues, self.outages, self.bytes = {}, [], [], 0
        self.sessions, self.members = {}, []
        self.files = []  # The kind of the server, the remote name, and the digest of each file.
        self.database = Database(self.folder / "postgresql")
        self.standby = Database(self.folder / "standby", self.database)

    def folders(self):
        """The folders in which the servers store files."""
        return [self.studio.servers["sftp"].folder / "files", self.studio.servers["loop"].folder / "uploads"]

    def begin(self, count):
        """Adds `count` sessions, and starts the members."""
        studio, number = self.studio, self.number
        self.view = ServersView(self)
        self.queue = FleetQueue(studio, number, self.url([self.database.port, self.standby.port]))
        self.queue.succeed("fleet", "init")
        self.queue.add_accounts()
        self.queue.succeed("queue", "set", "--max-sessions", session_limit)
        for index in range(count):
            self.add(f"{number}-{index}")
        self.members = [Member(self, f"m{index}") for index in range(member_count)]

    def url(self, ports):
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        return f"postgresql://owner@{hosts}/postgres?target_session_attrs=read-write"

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
            fault = self.draw.choices(["kill", "rescue", "cut", "suspend", "restart", "failover"], [20, 4, 10, 6, 2, 1])[0]
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
        # The relays keep their ports. Otherwise, other connections could take these ports.
        for relay in member.relays:
            relay.accept_and_close()
        time.sleep(self.draw.choice([0.1, 2, 8, 20]))
        for relay in member.relays:
            relay.listen()

    def suspend(self, member):
        member.process.send_signal(signal.SIGSTOP)
        time.sleep(self.draw.choice([1, 8, 20]))
        member.process.send_signal(signal.SIGCONT)

    def restart(self, _):
        self.database.stop(self.draw.choice([signal.SIGINT, signal.SIGQUIT]))
        # A command must fail with a message during the outage.
        begin = time.monotonic()
        status, _, message = self.queue.run("queue", "set", "--max-sessions", session_limit)
        self.outages.append(time.monotonic() - begin)
        if status != 3 or "Cannot reach the fleet's database" not in message:
            self.studio.anomaly(f"a command during an outage exited with {status}: {message[-500:]}")
        time.sleep(self.draw.uniform(0, 4))
        self.database.start()

    def failover(self, _):
        """Stops the primary server, promotes the standby server, and makes the stopped server the new standby server."""
        lost, self.database = self.database, self.standby
        lost.stop()
        time.sleep(self.draw.choice([0, 3, 12]))
        self.database.promote()
        self.queue.succeed("queue", "set", "--max-sessions", session_limit)
        self.standby = lost
        lost.follow(self.database)

    # Checks

    def check_limit(self):
        """Checks that the members do not run more sessions than the limit, according to the valid leases."""
        count = int(self.database.query("SELECT count(*) FROM session WHERE owner IS NOT NULL AND lease_until > clock_timestamp()")[0][0])
        if count > session_limit:
            self.studio.anomaly(f"{count} sessions run, but the limit is {session_limit}")

    def check_order(self):
        """Checks that the members took the sessions for the first time in the order of the queue."""
        taken = self.database.query(
            "SELECT kind::json->>'id' FROM event WHERE kind LIKE '{\"event\":\"willActivate\"%' ORDER BY revision")
        first = list(dict.fromkeys(row[0].lower() for row in taken))
        order = [row[0] for row in self.database.query("SELECT id FROM session ORDER BY position, id")]
        if first != order:
            position = next((index for index, pair in enumerate(zip(first, order)) if pair[0] != pair[1]), min(len(first), len(order)))
            self.studio.anomaly(
                f"{len(first)} of {len(order)} sessions were taken, and the order differs at {position}: {first[position:position + 3]}")

    def complete(self):
        """Waits until all sessions are completed, and checks all files."""
        end = time.monotonic() + 120 + self.bytes / (1 << 20)
        while rows := self.database.query("SELECT draft::json->>'name', state, error FROM session JOIN content ON session = id WHERE state <> 'completed'"):
            if time.monotonic() > end or any(state in ["failed", "cancelled"] for _, state, _ in rows):
                self.studio.anomaly(f"{len(rows)} sessions are not completed: {rows[:5]}")
                break
            time.sleep(0.5)
        self.view.end()
        self.check_order()
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
            self.studio.anomaly(f"unexpected files remain at sftp: {extra[:5]}")

    def close(self):
        for member in self.members:
            member.process.kill()
            member.process.wait()
            for relay in member.relays:
                relay.refuse()
        self.view.end()
        for server in (self.standby, self.database):
            server.stop()
        for folder in self.folders():
            for path in folder.rglob("*"):
                if path.is_file():
                    path.unlink()
