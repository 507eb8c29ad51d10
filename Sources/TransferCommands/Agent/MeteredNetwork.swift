import Foundation
import TransferKit

/// Whether the network is metered, according to NetworkManager.
enum MeteredNetwork {
    /// Reads NetworkManager's D-Bus property `Metered` with systemd's `busctl`, which waits at most five seconds.
    ///
    /// - Returns: Whether the network is metered, or probably metered; false if NetworkManager does not run.
    static func isMetered() async -> Bool {
        await BlockingIO.run {
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/busctl")
            process.arguments = [
                "--system", "--timeout=5", "get-property", "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager",
                "org.freedesktop.NetworkManager", "Metered",
            ]
            let output = Pipe()
            (process.standardInput, process.standardOutput, process.standardError) =
                (FileHandle.nullDevice, output, FileHandle.nullDevice)
            guard (try? process.run()) != nil, let answer = try? output.fileHandleForReading.readToEnd() else { return false }
            // NMMetered of NetworkManager's D-Bus types: 1 means yes, and 3 means that NetworkManager guesses yes.
            return ["u 1\n", "u 3\n"].contains(String(decoding: answer, as: UTF8.self))
        }
    }
}
