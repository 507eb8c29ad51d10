import Foundation
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Whether the network is metered, according to NetworkManager.
enum MeteredNetwork {
    /// The time after which NetworkManager counts as unavailable.
    private static let limit = Duration.seconds(5)

    /// Whether this machine has a message bus, without which NetworkManager can't run.
    private static var hasBus: Bool {
        ProcessInfo.processInfo.environment["DBUS_SYSTEM_BUS_ADDRESS"] != nil
            || ["/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket"].contains(where: FileManager.default.fileExists(atPath:))
    }

    /// Reads NetworkManager's D-Bus property `Metered` with systemd's `busctl`, and waits at most five seconds.
    ///
    /// - Returns: Whether the network is metered, or probably metered; false if NetworkManager does not run.
    static func isMetered() async -> Bool {
        guard hasBus else { return false }
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/busctl")
        process.arguments = [
            "--system", "--timeout=5", "get-property", "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager",
            "org.freedesktop.NetworkManager", "Metered",
        ]
        let output = Pipe()
        (process.standardInput, process.standardOutput, process.standardError) = (FileHandle.nullDevice, output, FileHandle.nullDevice)
        guard (try? process.run()) != nil else { return false }
        // The timeout of busctl does not include the time to connect to the bus.
        let end = Task { [number = process.processIdentifier] in
            try await Task.sleep(for: limit)
            kill(number, SIGKILL)
        }
        defer { end.cancel() }
        let answer = await BlockingIO.run { (try? output.fileHandleForReading.readToEnd()) ?? Data() }
        // NMMetered of NetworkManager's D-Bus types: 1 means yes, and 3 means that NetworkManager guesses yes.
        return ["u 1\n", "u 3\n"].contains(String(decoding: answer, as: UTF8.self))
    }
}
