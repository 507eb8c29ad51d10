import Foundation
import Glibc
import Locking
import Logging
import ScriptedHTTP
import SystemPackage
import TransferCore
import TransportSFTP
import TransportSupport

/// OpenSSH's SFTP server in its own process, without SSH. Two threads pass bytes between the process and a client.
final class ServerProcess: SFTPLink {
    struct Missing: Error {}

    /// The possible paths of the server program on different systems.
    private static let programs = ["/usr/lib/openssh/sftp-server", "/usr/libexec/sftp-server", "/usr/lib/ssh/sftp-server"]

    let client: SFTPClient
    let commands: (any CommandRunner)?
    let hostKeyFingerprint: String? = nil
    private let process: PipedProcess
    private let wakeSignal: DispatchSemaphore
    private let cuts: CutPlan
    private let sent = Locked(0)
    private let ending = Locked<(threads: Int, isOver: Bool, waiters: [CheckedContinuation<Void, Never>])>((2, false, []))

    /// - Parameters:
    ///   - options: The options of sftp-server(8).
    ///   - cuts: Determines when the connection breaks.
    ///   - commands: Runs the client's commands, or nil if the server runs no commands.
    init(_ options: [String] = [], cuts: CutPlan = CutPlan(), commands: (any CommandRunner)? = nil) throws {
        self.commands = commands
        guard let program = Self.programs.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else { throw Missing() }
        process = try PipedProcess([program] + options)
        let signal = DispatchSemaphore(value: 0)
        wakeSignal = signal
        self.cuts = cuts
        client = SFTPClient(serverName: "pipe", wake: { signal.signal() })
        try startThread { self.read() }
        try startThread { self.write() }
        signal.signal()
    }

    /// Kills the process, which simulates a crash.
    func kill() {
        _ = Glibc.kill(process.identifier, SIGKILL)
    }

    /// Suspends the process until it is killed or resumed.
    func suspend() {
        _ = Glibc.kill(process.identifier, SIGSTOP)
    }

    func resume() {
        _ = Glibc.kill(process.identifier, SIGCONT)
    }

    var sentBytes: Int { sent.withLock { $0 } }

    func close() async {
        client.end(TransferError(.transient, .connectionLost, "The test closed the connection."))
        wakeSignal.signal()
        await withCheckedContinuation { continuation in
            let isOver = ending.withLock { ending in
                if !ending.isOver { ending.waiters.append(continuation) }
                return ending.isOver
            }
            if isOver { continuation.resume() }
        }
    }

    private func read() {
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(process.socket, $0.baseAddress, $0.count, 0) }
            guard count > 0 else { break }
            let passed = cuts.pass(count, .fromServer)
            unsafe buffer.withUnsafeBytes { unsafe client.receive(UnsafeRawBufferPointer(rebasing: $0.prefix(passed))) }
            if passed < count { break }
            wakeSignal.signal()
        }
        client.end(nil)
        wakeSignal.signal()
        shutdown(process.socket, CInt(SHUT_RDWR))
        endThread()
    }

    private func write() {
        while client.isOpen {
            wakeSignal.wait()
            while true {
                let bytes = client.bytesToSend()
                guard !bytes.isEmpty else { break }
                let passed = cuts.pass(bytes.count, .fromClient)
                if !write(bytes.prefix(passed)) || passed < bytes.count { client.end(nil) }
                sent.withLock { $0 += passed }
            }
        }
        // After the end of its input, the server processes all received bytes and then exits.
        shutdown(process.socket, CInt(SHUT_WR))
        endThread()
    }

    private func endThread() {
        let isLast = ending.withLock { ending in
            ending.threads -= 1
            return ending.threads == 0
        }
        guard isLast else { return }
        process.awaitEnd()
        let waiters = ending.withLock { ending in
            ending.isOver = true
            defer { ending.waiters = [] }
            return ending.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    private func write(_ bytes: ArraySlice<UInt8>) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe send(process.socket, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}

/// A program whose standard input and output are one end of a socket pair.
private struct PipedProcess {
    let identifier: pid_t
    let socket: CInt

    init(_ arguments: [String]) throws {
        var ends: [CInt] = [-1, -1]
        // Without the close-on-exec flag, a program that another test starts could keep the connection open.
        guard unsafe socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw Errno(rawValue: errno)
        }
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        for descriptor in [CInt(0), 1] { unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], descriptor) }
        var child: pid_t = 0
        let pointers = unsafe arguments.map { unsafe strdup($0) } + [nil]
        let result = unsafe posix_spawn(&child, arguments[0], &actions, nil, pointers, environ)
        unsafe pointers.forEach { unsafe free($0) }
        unsafe posix_spawn_file_actions_destroy(&actions)
        Glibc.close(ends[1])
        guard result == 0 else { throw Errno(rawValue: result) }
        (identifier, socket) = (child, ends[0])
    }

    func awaitEnd() {
        var status: CInt = 0
        while unsafe waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        Glibc.close(socket)
    }
}
