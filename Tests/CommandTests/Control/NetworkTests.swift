import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferKit

/// Whether this process can create network and mount namespaces. On many systems, only root can.
private let hasNamespaces = (try? StartedProgram.run("unshare", ["--net", "--mount", "true"]).status) == 0

/// `transferq` in a separate network namespace, with a separate message bus (network_namespaces(7), dbus-daemon(1)).
@Suite(.timeLimit(.minutes(5)), .enabled(if: hasNamespaces, "unshare --net --mount needs root")) struct NetworkTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        try FileManager.default.createDirectory(atPath: folder.path.appending("up").string, withIntermediateDirectories: true)
        try Data(repeating: 7, count: 100_000).write(to: URL(filePath: folder.path.appending("file").string))
    }

    /// Runs a script in a new network namespace without routes. `t` runs `transferq` with a storage folder, and `field` prints a field of
    /// the session. `far` waits until the session's next attempt is at least the given number of seconds away, or the session has failed, and
    /// prints the time of the attempt. `imitate` replaces `busctl`, or another program, with a script.
    private func run(_ script: String) async throws -> [String] {
        let (transferq, server) = (TransferQ.executable, TransferQ.executable.removingLastComponent().appending("tus-loopback"))
        let words = ["--net", "--mount", "bash", "-c", Self.prelude + script, "test", transferq.string, server.string, folder.path.string]
        let result = try await BlockingIO.run { try StartedProgram.run("unshare", words) }
        let output = String(decoding: result.output, as: UTF8.self)
        try #require(result.status == 0, "\(output)")
        return output.split(separator: "\n").map(String.init)
    }

    private static let prelude = #"""
        set -euo pipefail
        exec 2>&1
        transferq=$1 server=$2 folder=$3 pids=
        t() { local command=$1; shift; "$transferq" "$command" "$@" --store "$folder/store"; }
        account() { "$transferq" account add a "tus+http://127.0.0.1:$1/files/" --store "$folder/store" >/dev/null; }
        field() { t list --json | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
        agent() { "$transferq" agent run --store "$folder/store" >"$folder/log" 2>&1 & pids="$pids $!"; }
        serve() {
            coproc "$server" --port "$1" --folder "$folder/up"
            pids="$pids $COPROC_PID"
            read -r <&"${COPROC[0]}"
        }
        retry() { field why | grep --only-matching '[0-9-]*T[0-9:]*Z' || true; }
        far() {
            local at=
            until [ -n "$at" ] && [ $(($(date --date="$at" +%s) - $(date +%s))) -ge "$1" ] || [ "$(field state)" = failed ]; do
                at=$(retry)
            done
            date --date="$at" +%s
        }
        imitate() {
            printf '#!/bin/bash\nfolder=%s\necho $$ >>"$folder/asked"\n%s\n' "$folder" "$1" >"$folder/imitation"
            chmod +x "$folder/imitation"
            mount --bind "$folder/imitation" "${2:-/usr/bin/busctl}"
            export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/none
        }
        trap 'kill $pids $(cat "$folder/asked" 2>/dev/null) 2>/dev/null || true; wait' EXIT

        """#

    /// Without the route, the next attempt would begin at the time that `why` reports.
    @Test func `a new route wakes a session that waits for its server`() async throws {
        let lines = try await run(
            #"""
            account 8421
            id=$(t upload a "$folder/file")
            agent
            far 4
            ip link set lo up
            serve 8421
            ip route add 198.51.100.0/24 dev lo
            until [ "$(field state)" = completed ]; do :; done
            date --date="$(field endedAt)" +%s.%N
            """#)
        let dates = lines.suffix(2).compactMap(Double.init)
        #expect(dates.count == 2 && dates[1] < dates[0], "\(lines)")
    }

    @Test func `each new route wakes a session, even if NetworkManager does not respond`() async throws {
        let lines = try await run(
            #"""
            imitate 'mkdir "$folder/begun" 2>/dev/null || exec sleep infinity'
            account 8423
            id=$(t upload a "$folder/file")
            agent
            far 8
            before=$(retry)
            ip link set lo up
            ip route add 198.51.100.0/24 dev lo
            # No server is running yet, so the attempt fails, and the next one is due at another time.
            until now=$(retry) && [ -n "$now" ] && [ "$now" != "$before" ]; do :; done
            date +%s.%N
            far 4
            serve 8423
            ip route delete 198.51.100.0/24 dev lo
            ip route add 198.51.100.0/24 dev lo
            until [ "$(field state)" = completed ]; do :; done
            date --date="$(field endedAt)" +%s.%N
            """#)
        let dates = lines.suffix(4).compactMap(Double.init)
        #expect(dates.count == 4 && dates[1] < dates[0] && dates[3] < dates[2], "\(lines)")
    }

    @Test func `only the web server listens on a network address`() async throws {
        let lines = try await run(
            #"""
            ip link set lo up
            listeners() { ss --no-header --listening --tcp --udp; }
            agent
            until [ "$("$transferq" queue status --store "$folder/store" --json 2>/dev/null | grep --count '"mode":"running"')" = 1 ]; do :; done
            listeners
            echo agent
            coproc "$transferq" web --listen 127.0.0.1:8427 --store "$folder/store"
            pids="$pids $COPROC_PID"
            read -r <&"${COPROC[0]}"
            listeners | grep --only-matching '127.0.0.1:8427'
            """#)
        #expect(lines == ["agent", "127.0.0.1:8427"], "\(lines)")
    }

    @Test func `a session without a route does not give up`() async throws {
        let lines = try await run(
            #"""
            "$transferq" account add a "tus+https://198.51.100.1:9/files/" --store "$folder/store" >/dev/null
            id=$(t upload a "$folder/file" --give-up-after 1)
            agent
            far 4 >/dev/null
            field state
            ip link set lo up
            ip address add 198.51.100.1/24 dev lo
            ip route add 198.51.100.0/24 dev lo
            until [ "$(field state)" = failed ]; do :; done
            field state
            """#)
        #expect(lines.suffix(2) == ["waiting", "failed"], "\(lines)")
    }

    /// python-dbusmock imitates NetworkManager on the test's own message bus.
    @Test func `with --only-unmetered, a session waits while the network is metered`() async throws {
        let lines = try await run(
            #"""
            ip link set lo up
            export DBUS_SYSTEM_BUS_ADDRESS="unix:path=$folder/bus"
            dbus-daemon --session --nofork --address="$DBUS_SYSTEM_BUS_ADDRESS" &
            pids="$pids $!"
            until [ -S "$folder/bus" ]; do :; done
            service=org.freedesktop.NetworkManager path=/org/freedesktop/NetworkManager
            /usr/bin/python3 -m dbusmock --system "$service" "$path" "$service" >/dev/null &
            bus=$! pids="$pids $!"
            until busctl --system introspect "$service" "$path" >/dev/null 2>&1; do kill -0 "$bus"; done
            call() { busctl --system call "$service" "$path" org.freedesktop.DBus.Mock "$@" >/dev/null; }
            call AddProperty ssv "$service" Metered u 1
            serve 8422
            account 8422
            id=$(t upload a "$folder/file" --only-unmetered)
            agent
            until t why "$id" | grep "network is expensive"; do :; done
            busctl --system set-property "$service" "$path" "$service" Metered u 2
            ip route add 198.51.100.0/24 dev lo
            until [ "$(field state)" = completed ]; do :; done
            field state
            """#)
        #expect(lines.last == "completed" && lines.contains { $0.contains("expensive") }, "\(lines)")
    }

    /// A script replaces `timeout`, so a wait for NetworkManager would never end.
    @Test func `a run in the foreground and a stream don't wait for NetworkManager`() async throws {
        let lines = try await run(
            #"""
            imitate 'exec sleep infinity' /usr/bin/timeout
            ip link set lo up
            serve 8425
            account 8425
            t upload a "$folder/file" >/dev/null
            "$transferq" run --store "$folder/store"
            field state
            t stream a sent <"$folder/file"
            [ -s "$folder/asked" ] && echo sent
            """#)
        #expect(lines.contains("completed") && lines.last == "sent", "\(lines)")
    }

    @Test func `with --only-unmetered, a session runs after NetworkManager has failed to respond`() async throws {
        let lines = try await run(
            #"""
            imitate 'exec sleep infinity'
            ip link set lo up
            serve 8426
            account 8426
            t upload a "$folder/file" --only-unmetered >/dev/null
            t upload a "$folder/file" --name other >/dev/null
            "$transferq" run --store "$folder/store" --json | grep --only-matching '"completed","id":"[^"]*"'
            t list --json | grep --only-matching '"state":"[a-z]*"'
            """#)
        #expect(lines.suffix(2) == [#""state":"completed""#, #""state":"completed""#], "\(lines)")
    }

    @Test func `a run in the foreground and a stream respect --only-unmetered`() async throws {
        let lines = try await run(
            #"""
            imitate 'cat "$folder/metered"'
            echo u 1 >"$folder/metered"
            ip link set lo up
            serve 8424
            account 8424
            t upload a "$folder/file" --only-unmetered >/dev/null
            "$transferq" run --store "$folder/store" && exit 1
            field state
            t stream a sent --only-unmetered <"$folder/file" &
            stream=$!
            until [ $(t list --json | grep --count '"state":"waiting","phase":null,"why":"[^"]*expensive') = 2 ]; do kill -0 "$stream"; done
            echo u 2 >"$folder/metered"
            ip route add 198.51.100.0/24 dev lo
            wait "$stream"
            echo sent
            """#)
        #expect(lines.contains { $0.contains("expensive") } && lines.contains("waiting") && lines.last == "sent", "\(lines)")
    }
}
