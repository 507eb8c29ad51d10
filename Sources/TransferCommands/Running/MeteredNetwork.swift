import Foundation
import TransferKit

/// Whether the network is metered, according to NetworkManager.
enum MeteredNetwork {
    /// Whether this machine has a message bus, without which NetworkManager can't run.
    private static var hasBus: Bool {
        ProcessInfo.processInfo.environment["DBUS_SYSTEM_BUS_ADDRESS"] != nil
            || ["/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket"].contains(where: FileManager.default.fileExists(atPath:))
    }

    /// Reads NetworkManager's D-Bus property `Metered` with systemd's `busctl`, and waits at most five seconds.
    ///
    /// - Returns: Whether the network is metered, or probably metered; false if NetworkManager does not run or respond.
    static func isMetered() async -> Bool {
        guard hasBus else { return false }
        let response = await BlockingIO.run { () -> Data in
            let (process, output) = (Process(), Pipe())
            // The timeout of busctl does not include the time to connect to the bus.
            process.executableURL = URL(filePath: "/usr/bin/timeout")
            process.arguments = [
                "--signal=KILL", "5", "/usr/bin/busctl", "--system", "--timeout=5", "get-property", "org.freedesktop.NetworkManager",
                "/org/freedesktop/NetworkManager", "org.freedesktop.NetworkManager", "Metered",
            ]
            (process.standardInput, process.standardOutput, process.standardError) = (
                FileHandle.nullDevice, output, FileHandle.nullDevice
            )
            guard (try? process.run()) != nil else { return Data() }
            return (try? output.fileHandleForReading.readToEnd()) ?? Data()
        }
        // NMMetered of NetworkManager's D-Bus types: 1 means yes, and 3 means that NetworkManager guesses yes.
        return ["u 1\n", "u 3\n"].contains(String(decoding: response, as: UTF8.self))
    }
}
