"""A relay on the loopback interface between transferq and one server.

Counts the bytes in both directions, limits their rate, and cuts connections according to a plan. Can also act like a stopped server, which refuses
connections, or like a forwarder to a stopped server, which accepts each connection and closes it immediately.
"""

import asyncio
import random
import socket
import struct
import threading
import time


class Cuts:
    """A plan for cutting connections. A connection is reset or half-closed, after a number of bytes in one direction or after a time.

    limit: The maximum number of connections to cut.
    share: The fraction of connections to cut, from 0 to 1.
    longest: The maximum time before a cut, in seconds.
    largest: The maximum number of bytes before a cut, as an exponent: 24 means 2^24 bytes.
    """

    def __init__(self, seed, limit, share=0.7, longest=2.0, largest=24):
        self.random = random.Random(seed)
        self.limit, self.share, self.longest, self.largest = limit, share, longest, largest
        self.made = 0
        self.kinds = {}

    def next(self):
        """Returns how to cut the next connection, or None if it must not be cut.

        The result is (trigger, amount, ending): after `amount` bytes in the direction "up" or "down", or after `amount` seconds if the trigger is
        "time", the connection ends with a "reset" or a "half-close".
        """
        draw = self.random
        is_cut = draw.random() < self.share
        trigger = draw.choice(["up", "down", "time"])
        # All orders of magnitude are equally likely, so a cut in a greeting is as likely as a cut after mebibytes of content.
        position = 0 if draw.random() < 0.02 else int(2 ** draw.uniform(0, self.largest))
        amount = draw.uniform(0, self.longest) if trigger == "time" else position
        ending = draw.choice(["reset", "reset", "half-close"])
        return (trigger, amount, ending) if is_cut and self.made < self.limit else None

    def count(self, trigger, ending):
        """Counts a connection that was cut."""
        self.made += 1
        self.kinds[f"{trigger} {ending}"] = self.kinds.get(f"{trigger} {ending}", 0) + 1


class Relay:
    """A relay to one server. Keeps its own port even if the server restarts on another port."""

    def __init__(self, loop, target, rate=None):
        self.loop, self.target, self.rate = loop, target, rate
        self.up = self.down = self.connections = 0
        self.cuts = None
        self.server = None
        self.is_target_stopped = False
        self.open = set()
        self.free_at = 0.0
        self.port = 0
        self.listen()

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def listen(self):
        """Starts to listen, on the same port as before if the relay has listened before. After `accept_and_close`, forwards connections again."""
        async def start():
            if self.is_target_stopped:
                self.is_target_stopped = False
                return
            self.server = await asyncio.start_server(self.accept, "127.0.0.1", self.port, backlog=128, limit=1 << 18)
            self.port = self.server.sockets[0].getsockname()[1]
        self.call(start())

    def refuse(self):
        """Refuses new connections, and resets open connections."""
        async def stop():
            self.server.close()
            for writer in list(self.open):
                self.reset(writer)
        self.call(stop())

    def accept_and_close(self):
        """Resets open connections. Accepts new connections and closes them immediately, until `listen` is called."""
        async def stop():
            self.is_target_stopped = True
            for writer in list(self.open):
                self.reset(writer)
        self.call(stop())

    def reset(self, writer):
        link = writer.get_extra_info("socket")
        try:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
        writer.transport.abort()
        self.open.discard(writer)

    async def accept(self, reader, writer):
        self.connections += 1
        if self.is_target_stopped:
            writer.close()
            return
        self.open.add(writer)
        cut = self.cuts.next() if self.cuts else None
        try:
            there, to_server = await asyncio.open_connection("127.0.0.1", self.target, limit=1 << 18)
        except OSError:
            self.reset(writer)
            return
        self.open.add(to_server)
        tasks = []

        def end(ending, direction):
            self.cuts.count(cut[0], ending)
            if ending == "half-close":
                # The receiver sees the end of this direction. The other direction stays open for half a second.
                for each, task, receiver in zip(["up", "down"], tasks, [to_server, writer]):
                    if each == direction:
                        task.cancel()
                        try:
                            receiver.write_eof()
                        except OSError:
                            pass
                self.loop.call_later(0.5, lambda: [self.reset(each) for each in (writer, to_server)])
            else:
                for each in (writer, to_server):
                    self.reset(each)

        for direction, source, sink in [("up", reader, to_server), ("down", there, writer)]:
            limit = cut[1] if cut and cut[0] == direction else None
            tasks.append(asyncio.ensure_future(self.pump(source, sink, direction, limit, cut and cut[2], end)))
        timer = None
        if cut and cut[0] == "time":
            side = "up" if cut[1] * 1e6 % 2 < 1 else "down"
            timer = self.loop.call_later(cut[1], lambda: end(cut[2], side))
        await asyncio.gather(*tasks, return_exceptions=True)
        if timer:
            timer.cancel()
        if not (cut and cut[2] == "half-close"):
            for each in (writer, to_server):
                each.close()
                self.open.discard(each)

    async def pump(self, source, sink, direction, limit, ending, end):
        """Forwards bytes in one direction. If there is a limit, calls `end` to cut the connection after that many bytes."""
        passed = 0
        while True:
            if limit is not None and passed >= limit:
                return end(ending, direction)
            try:
                data = await source.read(1 << 16 if limit is None else min(1 << 16, limit - passed))
            except OSError:
                return self.reset(sink)
            if not data:
                try:
                    sink.write_eof()
                except OSError:
                    pass
                return
            passed += len(data)
            setattr(self, direction, getattr(self, direction) + len(data))
            if self.rate:
                self.free_at = max(self.free_at, time.monotonic()) + len(data) / self.rate
                await asyncio.sleep(max(0, self.free_at - time.monotonic() - 0.01))
            try:
                sink.write(data)
                await sink.drain()
            except OSError:
                return self.reset(sink)


def start_loop():
    """Starts an event loop on its own thread, which ends with this process."""
    loop = asyncio.new_event_loop()
    # Ignore connection errors, because the relays cut connections on purpose.
    loop.set_exception_handler(lambda _, __: None)
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop
