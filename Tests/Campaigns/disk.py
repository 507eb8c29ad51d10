"""Keeps the storage folder or the downloads on a small tmpfs. Fills the tmpfs, so that writes fail at many points, and then frees space."""

import ctypes
import os
import random
import shutil
import subprocess
import time

from studio import Queue, Studio, write_file
from work import Work

page = 4096
libc = ctypes.CDLL(None, use_errno=True)


def campaign(seed, rounds, seconds, program):
    """Runs single commands, downloads and complete runs on a disk with little free space.

    Fills the disk during a run `rounds` times. Without `rounds`, fills it once for each full minute of `seconds`, but at least once. If `seconds`
    is below 300, runs only a sample of the commands, and the free space of commands and downloads grows in larger steps. Does nothing if this user
    can't mount a file system. Returns the anomalies and a line of statistics.
    """
    is_short = not rounds and seconds < 300
    if os.getuid() != 0 or libc.unshare(0x20000) != 0:  # CLONE_NEWNS
        return [], "disk: NOT RUN, because this user can't mount a file system; run the campaign as root"
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    studio = Studio("disk", seed, program)
    disk = Disk(studio.folder / "disk", 96 << 20)
    one = Campaign(studio, disk, random.Random(seed))
    try:
        one.commands(steps=12 if is_short else 1, kinds=3 if is_short else None)
        one.downloads(steps=2 if is_short else 16)
        for number in range(rounds or int(seconds // 60) or 1):
            one.filled_run(is_killed=number % 2 == 1)
    finally:
        studio.close()
        disk.unmount()
    return studio.anomalies, (
        f"disk: {one.refusals} of {one.steps} commands of {len(one.sufficient_space)} kinds failed on a full disk"
        f" (sufficient space: {', '.join(f'{name} {need >> 10} KiB' for name, need in one.sufficient_space.items())}),"
        f" {one.unfinished_downloads} downloads not completed for lack of space, the disk filled during {one.fills} runs;"
        f" exit codes {sorted(one.codes)}")


class Disk:
    """A small file system, and the file "filler", which takes up its free space."""

    def __init__(self, folder, size):
        self.folder, self.filler = folder, folder / "filler"
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "campaign", folder], check=True)

    def free(self):
        state = os.statvfs(self.folder)
        return state.f_bavail * state.f_frsize

    def fill_except(self, free):
        """Fills the disk except for `free` bytes. Succeeds even while other processes write to the disk."""
        self.empty()
        with open(self.filler, "wb") as file:
            amount = self.free() - free
            while amount >= page:
                try:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, amount)
                    break
                except OSError:
                    amount = self.free() - free

    def empty(self):
        self.filler.unlink(missing_ok=True)

    def unmount(self):
        subprocess.run(["umount", "--lazy", self.folder], check=False)


class Campaign:
    """The three parts of the campaign, and the numbers for its statistics."""

    def __init__(self, studio, disk, draw):
        self.studio, self.disk, self.draw = studio, disk, draw
        self.refusals = self.steps = self.unfinished_downloads = self.fills = self.queues = 0
        self.sufficient_space, self.codes = {}, set()

    def queue(self):
        self.queues += 1
        return Queue(self.studio, self.queues, store=self.disk.folder / f"store-{self.queues}")

    # Commands

    def commands(self, steps, kinds):
        """Runs each command with growing free space until it succeeds. If `kinds` is a number, runs only a sample of that many commands."""
        queue = self.queue()
        for index in range(60):
            write_file(queue.sources / "many" / str(index), 10, self.draw)
        queue.add_accounts()
        ids = [queue.succeed("add", "loop", queue.sources / "many" / str(index))[0] for index in range(8)]
        queue.succeed("cancel", ids[7])
        template = queue.folder / "template"
        shutil.copytree(queue.store, template)
        many = sorted((queue.sources / "many").iterdir())
        # "a new store" stands for a command that must create the storage folder.
        commands = {
            "a new store": None, "list": ["list"], "show": ["show", ids[0]], "account add": ["account", "add", "new", "tus+http://127.0.0.1:1/"],
            "add": ["add", "loop", many[0]], "add --each": ["add", "loop", *many, "--each"], "move": ["move", ids[3], 0],
            "hold": ["hold", ids[1]], "set": ["set", ids[2], "--set-tag", "t" * 50], "cancel": ["cancel", ids[4]], "retry": ["retry", ids[7]],
            "remove": ["remove", "--all"], "account remove": ["account", "remove", "loop", "--cascade"],
            "queue set": ["queue", "set", "--max-sessions", "3"],
        }
        for name in self.draw.sample(list(commands), kinds) if kinds else commands:
            self.run_until_success(queue, template, name, commands[name], steps)
        self.disk.empty()
        shutil.rmtree(queue.store)

    def run_until_success(self, queue, template, name, arguments, steps):
        """Runs one command with growing free space until it succeeds. Each time, starts with a copy of the storage folder `template`.

        A command that fails must exit with 3, print a diagnostic, and change nothing. If `steps` is greater than 1, the space grows in random steps.
        """
        free = 0
        while free < 8 << 20:
            shutil.rmtree(queue.store, ignore_errors=True)
            if arguments:
                shutil.copytree(template, queue.store)
            before = self.state(queue) if arguments else ""
            self.disk.fill_except(free)
            status, output, diagnostics = queue.run(*(arguments or ["account", "add", "new", "tus+http://127.0.0.1:1/"]))
            self.disk.empty()
            self.steps += 1
            self.codes.add(status)
            after = self.state(queue)
            if status == 0:
                if name not in ["list", "show", "a new store"] and before == after:
                    self.studio.anomaly(f"{name} at {free} bytes of free space exited with 0, but changed nothing")
                self.sufficient_space[name] = free
                return
            self.refusals += 1
            if status != 3 or not diagnostics.strip() or output:
                self.studio.anomaly(f"{name} at {free} bytes of free space exited with {status}: {output}{diagnostics[-500:]}")
            if arguments and before != after:
                self.studio.anomaly(f"{name} at {free} bytes of free space exited with {status}, but changed {before} to {after}")
            if not arguments:
                queue.succeed("account", "add", "new", "tus+http://127.0.0.1:1/")
            free += page * (1 if steps == 1 else self.draw.randint(1, 2 * steps))
        self.studio.anomaly(f"{name} does not succeed with 8 MiB of free space: {diagnostics[-500:]}")

    def state(self, queue):
        """Returns the contents of the queue: its sessions, its accounts and the state of the queue."""
        return [queue.run(*each, "--json")[1] for each in (["list"], ["account", "list"], ["queue", "status"])]

    # Downloads

    def downloads(self, steps):
        """Downloads files to a disk whose free space grows from zero until all files fit."""
        queue = self.queue()
        queue.store = queue.folder / "store"
        queue.downloads = self.disk.folder / "downloads"
        queue.downloads.mkdir()
        queue.add_accounts()
        work = Work(queue, self.draw, scale=0.25)
        for account in ["sftp", "put", "loop"]:
            work.new(account, is_download=True).file("reel", work.large(8, 12))
            if account != "loop":
                several = work.new(account, is_download=True)
                for index in range(10):
                    several.file(f"still{index}", self.draw.randrange(0, 100_000))
        work.add()
        need = work.bytes + (1 << 20)
        for step in range(steps + 1):
            used = sum(path.stat().st_blocks * 512 for path in queue.downloads.rglob("*") if path.is_file())
            self.disk.fill_except(max(0, need * step // steps - used) // page * page)
            status, _, diagnostics = queue.run("run", "--no-wait", "--progress", "plain")
            self.codes.add(status)
            waiting = [each for each in queue.list() if each["state"] != "completed"]
            self.unfinished_downloads += len(waiting)
            if status != (1 if waiting else 0) or waiting and not diagnostics:
                self.studio.anomaly(f"run with {step}/{steps} of the required space exited with {status}: {waiting} {diagnostics[-500:]}")
            for name, error in work.restore():
                if error["code"] != "diskFull":
                    self.studio.anomaly(f"{name} failed on a full disk: {error}")
        self.disk.empty()
        queue.run("run", "--progress", "none")
        work.check()
        shutil.rmtree(queue.downloads)
        work.clean()

    # Runs

    def filled_run(self, is_killed):
        """Fills the disk during transfers, and frees space a few seconds later. If `is_killed`, kills the run while the disk is full."""
        self.fills += 1
        queue = self.queue()
        queue.add_accounts()
        work = Work(queue, self.draw, scale=0.5, small=0.5)
        work.make()
        work.add()
        servers = self.studio.servers.values()
        for server in servers:
            server.relay.rate = 6 << 20
        begin = sum(server.relay.up + server.relay.down for server in servers)
        run = queue.start("run", "--progress", "plain")
        goal = begin + int(work.bytes * self.draw.uniform(0, 0.7))
        while run.poll() is None and sum(server.relay.up + server.relay.down for server in servers) < goal:
            time.sleep(0.02)
        self.disk.fill_except(page * self.draw.choice([0, 0, 1, 3, 8, 20]))
        self.check_command_on_full_disk(work)
        time.sleep(self.draw.uniform(0.2, 2.5))
        if is_killed:
            run.kill()
            run.communicate()
            self.codes.add(queue.run("list")[0])
        self.disk.empty()
        for server in servers:
            server.relay.rate = None
        if is_killed:
            run = queue.start("run", "--progress", "plain")
        status, _, diagnostics = queue.finish(run, ["run"], timeout=120)
        self.codes.add(status)
        if status == 1:
            # If all remaining sessions wait for disk space, the run ends with this message.
            if "Free some space" not in diagnostics:
                self.studio.anomaly(f"run exited with 1 on a full disk: {diagnostics[-1000:]}")
            status, _, diagnostics = queue.run("run", "--progress", "none")
        if status != 0:
            self.studio.anomaly(f"run exited with {status} after its disk was full: {diagnostics[-1000:]}")
        work.check_order(set())
        work.check(kills=1)
        if not self.studio.anomalies:
            shutil.rmtree(queue.store)
        work.clean()

    def check_command_on_full_disk(self, work):
        """Checks that a command either succeeds or changes nothing while the disk of the queue's owner is full."""
        session = work.new("loop")
        session.file("late", 1000)
        status, output, diagnostics = work.queue.run(*session.arguments())
        self.codes.add(status)
        if status == 0:
            session.id = output.split()[0]
            return
        # The command failed, so the session must not exist. If it does, the final check reports an unknown session.
        work.sessions.remove(session)
        if status != 3 or not diagnostics.strip() or output:
            self.studio.anomaly(f"add during a run on a full disk exited with {status}: {output}{diagnostics[-500:]}")
