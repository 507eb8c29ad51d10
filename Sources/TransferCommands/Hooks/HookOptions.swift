import ArgumentParser
import Crypto
import Foundation
import SystemPackage
import TransferCore
import TransferKit

/// The options of a hook, which passes events to a program or to a URL.
struct HookOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Run a program for each event; see above.", valueName: "program"))
    var exec: PathArgument?

    @Option(
        help: ArgumentHelp("Send each event to a URL with POST; see above.", valueName: "url"), transform: TextArgument.text)
    var webhook: String?

    @Option(help: ArgumentHelp("The file with the secret that signs requests.", valueName: "file"))
    var secretFile: PathArgument?

    @Option(help: ArgumentHelp("The hook's name (default: from its target).", valueName: "name"))
    var hook: String?

    @Argument(
        parsing: .postTerminator, help: ArgumentHelp("The program's arguments, after --.", valueName: "argument"))
    var words: [String] = []

    var isGiven: Bool { exec != nil || webhook != nil }

    func validate() throws {
        if exec != nil, webhook != nil { throw ValidationError("--exec and --webhook can't be used together. Start the command twice.") }
        if (webhook == nil) != (secretFile == nil) { throw ValidationError("--webhook and --secret-file must be used together.") }
        if let webhook, !webhook.hasPrefix("https://"), !webhook.hasPrefix("http://") {
            throw ValidationError("--webhook must be a URL that begins with https:// or http://.")
        }
        if hook != nil, !isGiven { throw ValidationError("--hook needs --exec or --webhook.") }
        if !words.isEmpty, exec == nil { throw ValidationError("Only --exec takes arguments after --.") }
        if let hook, hook.wholeMatch(of: /[A-Za-z0-9_-]{1,64}/) == nil {
            throw ValidationError("--hook must have 1 to 64 letters, digits, hyphens and underscores.")
        }
    }

    private var arguments: [[UInt8]] { words.map { ProcessArguments.bytes(of: $0) } }

    /// Opens the hook.
    ///
    /// - Parameters:
    ///   - folder: The storage folder. A file in it contains the revision of the last handled event.
    ///   - warn: Prints a message about a failed attempt.
    /// - Returns: The hook; nil if no hook is given.
    /// - Throws: An error if the secret can't be read or is invalid, or if another process runs the hook.
    func open(in folder: FilePath, warn: @escaping @Sendable (String) async -> Void) async throws -> EventHook? {
        guard let target = try await target() else { return nil }
        let path = folder.appending("hook-\(hook ?? defaultName).revision")
        let position = try await BlockingIO.run(.storage) { try HookPosition(path) }
        return EventHook(target, position, warn: warn)
    }

    private func target() async throws -> EventHook.Target? {
        if let exec { return .program(HookProgram(program: exec.path, arguments: arguments)) }
        guard let webhook, let path = secretFile?.path else { return nil }
        let secret = try await BlockingIO.run { () throws(TransferError) in
            try PrivateFile.read(path, as: "secret file", limit: 4_096)
        }
        guard let hook = Webhook(webhook, secret: secret) else {
            throw CommandFailure(
                .usage,
                "The secret in \(path) is too short or not valid. Write at least 16 bytes, or whsec_ and base64: openssl rand -hex 32")
        }
        return .webhook(hook)
    }

    /// The default name of the hook: a hash of its target, so that the name is the same in each run.
    private var defaultName: String {
        let fields = exec.map { [$0.path.bytes] + arguments } ?? [Array((webhook ?? "").utf8)]
        var hash = SHA256()
        for field in fields {
            hash.update(data: Data("\(field.count):".utf8))
            hash.update(data: Data(field))
        }
        return hash.finalize().prefix(8).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
