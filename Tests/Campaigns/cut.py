"""Cuts the connections to all servers after random numbers of bytes or after random times. All files must arrive. Prints how many bytes were sent."""

import random
import time

from relay import Cuts
from studio import Queue, Studio
from work import Work

cuts_per_queue = 40


def campaign(seed, rounds, seconds, program):
    """Cuts connections `rounds` times, or for 40% of `seconds`. Returns the anomalies and a line of statistics."""
    studio = Studio("cut", seed, program)
    # Completing and checking the sessions takes the rest of the time.
    end = time.monotonic() + seconds * 0.4 if seconds else None
    made = number = 0
    content = dict.fromkeys(studio.servers, 0)
    kinds, failures = {}, []
    try:
        while (made < rounds if rounds else time.monotonic() < end or not number) and len(studio.anomalies) < 100:
            number += 1
            draw = random.Random(f"{seed}-{number}")
            queue = Queue(studio, number)
            queue.add_accounts()
            work = Work(queue, draw, scale=1 if rounds else 0.25, small=1 if rounds else 0.3)
            work.make()
            work.add()
            goal = min(cuts_per_queue if rounds else 12, rounds - made if rounds else 12)
            for kind, server in studio.servers.items():
                server.relay.rate = 12 << 20
                server.relay.cuts = Cuts(f"{seed}-{number}-{kind}", -(-goal // len(studio.servers)))
            while True:
                status, _, diagnostics = queue.run("run", "--progress", "none", "--max-sessions", "8", timeout=600)
                failed = work.restore()
                if not failed:
                    break
                failures += failed
                for name, error in failed:
                    # A file may fail after its last attempt, but a cut connection must cause only errors of these two classes.
                    if error["class"] not in ["transient", "unreachable"]:
                        studio.anomaly(f"{name} failed because of a cut: {error}")
            if status != 0:
                studio.anomaly(f"the last run exited with {status}: {diagnostics[-1000:]}")
            for server in studio.servers.values():
                made += server.relay.cuts.made
                for kind, count in server.relay.cuts.kinds.items():
                    kinds[kind] = kinds.get(kind, 0) + count
                server.relay.cuts = None
            for session in work.sessions:
                content[session.account] += session.bytes
            work.check_order(set())
            # If the connection is cut between the last byte and the response, the outcome is unknown, as after a kill.
            work.check(kills=goal)
            work.clean()
    finally:
        wire = {kind: server.relay.up + server.relay.down for kind, server in studio.servers.items()}
        studio.close()
    return studio.anomalies, (
        f"cut: {made} cuts in {number} queues ({', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))}),"
        f" {sum(content.values()) >> 20} MiB of content, {sum(wire.values()) >> 20} MiB on the wire"
        f" ({', '.join(f'{kind} {wire[kind] / max(content[kind], 1):.3f} times its content' for kind in wire)}), {len(failures)} sessions"
        f" that used up their attempts {sorted({error['code'] for _, error in failures})}")
