"""Kills `transferq run` at random times, sometimes while other commands run.

All sessions that no command cancelled or removed must complete after the last kill.
"""

import random
import sys
import threading
import time

from studio import Queue, Studio
from work import Work

kills_per_queue = 25


def campaign(seed, rounds, seconds, program):
    """Kills `transferq run` `rounds` times, or for half of `seconds`. Returns the anomalies and a line of statistics."""
    studio = Studio("kill", seed, program)
    for server in studio.servers.values():
        server.relay.rate = 12 << 20
    begin = time.monotonic()
    # Completing and checking the sessions takes the rest of the time.
    end = begin + seconds * 0.5 if seconds else None
    kills = number = content = completed_runs = 0
    try:
        while (kills < rounds if rounds else time.monotonic() < end) and len(studio.anomalies) < 100:
            number += 1
            one = OneQueue(studio, number, random.Random(f"{seed}-{number}"))
            goal = min(kills_per_queue, rounds - kills) if rounds else kills_per_queue
            done, ended = one.run(goal, end)
            kills, content, completed_runs = kills + done, content + one.work.bytes, completed_runs + ended
            print(f"{kills} kills so far, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    finally:
        wire = sum(server.relay.up + server.relay.down for server in studio.servers.values())
        studio.close()
    return studio.anomalies, (
        f"kill: {kills} kills in {number} queues, {studio.commands} commands, {content >> 20} MiB of content,"
        f" {wire >> 20} MiB on the wire, {completed_runs} runs completed before their kill")


class OneQueue:
    """One queue whose runs are killed."""

    def __init__(self, studio, number, draw):
        self.studio, self.draw = studio, draw
        self.queue = Queue(studio, number)
        self.queue.add_accounts()
        self.work = Work(self.queue, draw, scale=0.5)
        self.work.make()
        self.work.add()
        self.moved = set()  # The IDs of sessions that a command may have moved.
        self.commands = []  # The commands that were started during the run.

    def run(self, goal, end):
        """Starts and kills runs until `goal` runs were killed, until the time `end`, or until two runs completed before their kill.

        Then checks the queue.

        Returns the number of kills, and the number of runs that completed before their kill.
        """
        kills = ended = 0
        while kills < goal and ended < 2 and not (end and time.monotonic() > end):
            run = self.queue.start("run", "--progress", "none")
            # Kill about a third of the runs while the queue opens or recovers, and the rest during transfers.
            delay = self.draw.uniform(0, 0.25 if self.draw.random() < 0.35 else 2)
            if self.draw.random() < 0.5:
                time.sleep(self.draw.uniform(0, delay))
                delay = self.draw.uniform(0, delay)
                self.start_commands()
            try:
                run.wait(delay)
                ended += 1
            except Exception:
                run.kill()
                kills += 1
            status, _, diagnostics = self.finish_killed(run)
            if self.draw.random() < 0.7:
                self.finish_commands()
            if kills % 10 == 0 and self.draw.random() < 0.5:
                self.work.restore()
        self.finish_commands()
        self.complete(kills)
        return kills, ended

    def finish_killed(self, run):
        """Reports an anomaly if the exit code of a run is not 0, 1, or that of a killed process."""
        output, diagnostics = run.communicate()
        if run.returncode not in [-9, 0, 1]:
            self.studio.anomaly(f"run exited with {run.returncode}: {diagnostics[-2000:]}")
        return run.returncode, output, diagnostics

    def complete(self, kills):
        """Runs the queue until all sessions are completed or cancelled, and then checks the sessions, their order and their files."""
        for _ in range(3):
            failed = self.work.restore()
            for name, error in failed:
                self.studio.anomaly(f"{name} failed: {error}")
            status, _, diagnostics = self.queue.run("run", "--progress", "none")
            states = {each["state"] for each in self.queue.list()}
            if states <= {"completed", "cancelled"}:
                break
        if status != 0:
            self.studio.anomaly(f"the last run exited with {status}: {diagnostics[-1000:]}")
        self.work.check_order(self.moved)
        self.work.check(kills)
        self.work.clean()

    # Commands during a run

    def start_commands(self):
        """Starts up to three commands. The process that owns the queue performs them. If no process owns the queue, each command opens the queue."""
        for _ in range(self.draw.randint(1, 3)):
            name = self.draw.choice([
                "now", "next", "move", "stop", "pause", "hold", "resume", "release", "list", "why", "set", "add", "cancel", "remove"])
            session = self.draw.choice(self.work.sessions)
            arguments = [name, session.id]
            if name in ["now", "next", "move"]:
                self.moved.add(session.id)
            if name == "list":
                arguments = ["list", "--json"]
            elif name == "move":
                arguments.append(self.draw.randrange(len(self.work.sessions)))
            elif name == "set":
                arguments += ["--rate", self.draw.choice(["20M", "0"])]
            elif name == "add":
                session = self.work.new(self.draw.choice(["loop", "sftp", "put"]))
                for index in range(3):
                    session.file(f"late{index}", self.draw.randrange(0, 200_000))
                arguments = session.arguments()
            elif name in ["cancel", "remove"] and (self.draw.random() < 0.6 or session.ends_as != "completed"):
                continue
            elif name == "cancel":
                # Without this option, a cancelled session keeps its unfinished content for a retry.
                arguments.append("--discard")
            process = self.queue.start(*arguments)
            is_killed = self.draw.random() < 0.1
            if is_killed:
                timer = threading.Timer(self.draw.uniform(0, 0.2), process.kill)
                timer.start()
            self.commands.append((name, session, arguments, process, is_killed))
            if name == "add":
                # Wait for the command, because the session's position is unknown until the command exits.
                self.finish_commands()

    def finish_commands(self):
        """Waits for the commands, and records their effects."""
        run_again = [session for name, session, *_ in self.commands if name == "now"]
        for name, session, arguments, process, is_killed in self.commands:
            if is_killed:
                output, diagnostics = process.communicate()
                status = process.returncode
            else:
                status, output, diagnostics = self.queue.finish(process, arguments, timeout=60)
            if status not in ([0, 4, -9] if is_killed else [0, 4] if name != "add" else [0]):
                self.studio.anomaly(f"{arguments} exited with {status}: {diagnostics[-1000:]}")
            if name == "add":
                self.record_added(session, output.split())
            elif name in ["cancel", "remove"] and status == 0:
                session.ends_as = "removed" if name == "remove" else "any" if session in run_again else "cancelled"
            elif name in ["cancel", "remove"] and status == -9:
                session.ends_as = "any"
            elif name == "now" and session.ends_as == "cancelled":
                # `now` runs a cancelled session again, so its final state is unknown.
                session.ends_as = "any"
        self.commands = []

    def record_added(self, session, ids):
        """Records the ID of a session that `add` may have added. `ids` is the output of the command."""
        found = [each["id"] for each in self.queue.list() if each["name"] == session.name]
        if len(found) > 1 or ids and found and ids != found:
            self.studio.anomaly(f"{session.name} was added as {ids}, but {found} are listed")
        session.id = (found or ids or [None])[0]
        if not found:
            if ids:
                self.studio.anomaly(f"{session.name} was added as {ids}, but is lost")
            self.work.sessions.remove(session)
