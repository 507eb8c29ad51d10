import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferKit

/// Whether this process can create network namespaces. Without root, many systems don't allow it.
private let hasNamespaces = (try? StartedProgram.run("unshare", ["--net", "true"]).status) == 0

/// The agent in a separate network namespace, with a separate message bus (network_namespaces(7), dbus-daemon(1)).
@Suite(.timeLimit(.minutes(5)), .enabled(if: hasNamespaces)) struct NetworkTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        try FileManager.default.createDirectory(atPath: folder.path.appending("up").string, withIntermediateDirectories: true)
        try Data(repeating: 7, count: 100_000).write(to: URL(filePath: folder.path.appending("file").string))
    }

    /// Runs a script in a new network namespace without routes. `t` runs `transferq` with a storage folder, and `field` prints a field of the
    /// session.
    private func run(_ script: String) async throws -> [String] {
        let (transferq, server) = (TransferQ.executable, TransferQ.executable.removingLastComponent().appending("tus-loopback"))
        let words = ["--net", "bash", "-c", Self.prelude + script, "test", transferq.string, server.string, folder.path.string]
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
        trap 'kill $pids; wait' EXIT

        """#

    /// Without the route, the next attempt would begin at the time that `why` reports.
    @Test func `a new route wakes a session that waits for its server`() async throws {
        let lines = try await run(
            #"""
            account 8421
            id=$(t upload a "$folder/file")
            agent
            # Wait for a retry that is at least 4 s away.
            while :; do
                retry=$(field why | grep --only-matching '[0-9-]*T[0-9:]*Z' || true)
                [ -n "$retry" ] && [ $(($(date --date="$retry" +%s) - $(date +%s))) -ge 4 ] && break
            done
            ip link set lo up
            serve 8421
            ip route add 198.51.100.0/24 dev lo
            until [ "$(field state)" = completed ]; do :; done
            date --date="$retry" +%s
            date --date="$(field endedAt)" +%s.%N
            """#)
        let dates = lines.suffix(2).compactMap(Double.init)
        #expect(dates.count == 2 && dates[1] < dates[0], "\(lines)")
    }

    /// python-dbusmock imitates NetworkManager on a bus of the test.
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
}
