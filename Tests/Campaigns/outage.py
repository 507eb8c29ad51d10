"""All servers stop during transfers and start again later. All sessions must then complete.

In about half of the rounds, forwarders accept the connections to the stopped servers and close them immediately. In the other rounds, connections are
refused.
"""

import random
import time

from studio import Queue, Studio
from work import Work


def campaign(seed, rounds, seconds, program):
    """Stops the servers `rounds` times, each time for 2 to 60 seconds. Without `rounds`, stops them once, for a twentieth of `seconds` but at most
    60 seconds.

    Returns the anomalies and a line of statistics.
    """
    studio = Studio("outage", seed, program, only=["loop", "sftp", "put"])
    waits, durations, forwarded = [], [], 0
    try:
        for number in range(1, (rounds or 1) + 1):
            draw = random.Random(f"{seed}-{number}")
            queue = Queue(studio, number)
            queue.add_accounts()
            work = Work(queue, draw, small=0.2)
            # 8 sessions: 3 for each of loop and sftp, and 2 for put.
            for account in studio.servers:
                for is_download in [False, True, False][:3 if account == "sftp" else 2 + (account == "loop")]:
                    session = work.new(account, is_download)
                    session.file("reel", work.large(4, 8))
            work.add()
            begin = {kind: server.relay.up + server.relay.down for kind, server in studio.servers.items()}
            for server in studio.servers.values():
                server.relay.rate = 6 << 20
            run = queue.start("run", "--progress", "none", "--max-sessions", "8")
            # Stop the servers when every relay has forwarded 512 KiB, or after 30 seconds at the latest.
            limit = time.monotonic() + 30
            while time.monotonic() < limit and any(
                    server.relay.up + server.relay.down < begin[kind] + (1 << 19) for kind, server in studio.servers.items()):
                time.sleep(0.02)
            is_forwarded = draw.random() < 0.5
            forwarded += is_forwarded
            for server in studio.servers.values():
                server.stop(is_forwarded)
                server.relay.rate = None
            duration = draw.uniform(2, 60) if rounds else min(60, seconds / 20)
            durations.append(duration)
            time.sleep(duration)
            for server in studio.servers.values():
                server.restart()
            back = time.monotonic()
            status, _, diagnostics = queue.finish(run, ["run"], timeout=120 + duration)
            waits.append(time.monotonic() - back)
            if status != 0:
                studio.anomaly(f"run exited with {status}: {diagnostics[-1000:]}")
            work.check(kills=1)
            work.clean()
    finally:
        studio.close()
    return studio.anomalies, (
        f"outage: {len(waits)} outages of {', '.join(f'{each:.0f}' for each in durations)} s ({forwarded} of them with forwarders), with 8 sessions,"
        f" which completed {', '.join(f'{wait:.1f}' for wait in waits)} s after the restart")
