package import TransferCore

/// What is done with a file when the server refuses it, as it decides what a status means.
package enum FileUse: Sendable {
    case upload
    case download
}

extension Status {
    /// The queue's terms for a request that the server refused: the one table for all of them.
    ///
    /// - Parameters:
    ///   - name: What the request was for, for people.
    ///   - isAboutPath: Whether the request named a path, and not something that is open.
    package func transferError(_ name: String, _ use: FileUse, isAboutPath: Bool = false, at server: String) -> TransferError {
        func error(_ failureClass: FailureClass, _ code: TransferError.Code, _ message: String) -> TransferError {
            TransferError(failureClass, code, message, cause: self.message.isEmpty ? nil : self.message)
        }
        switch code {
        case .noSuchFile where use == .download, .noSuchPath where use == .download:
            return error(.permanent, .noSuchRemoteFile, "There is no file \(name) at \(server).")
        case .noSuchFile, .noSuchPath:
            return error(.permanent, .noSuchRemoteFile, "There is no folder for \(name) at \(server), and it can't be made there.")
        case .permissionDenied:
            return error(
                .permanent, .forbidden,
                "\(server) does not let this account \(use == .upload ? "write" : "read") \(name); change its permissions there.")
        case .writeProtected:
            return error(.permanent, .forbidden, "\(name) can't be written at \(server): it is on a file system for reading only.")
        case .noSpace: return error(.remoteFull, .remoteFull, "\(server) has no space left for \(name).")
        case .quotaExceeded: return error(.remoteFull, .remoteFull, "The quota of this account at \(server) has no room for \(name).")
        case .failure where meansFull: return error(.remoteFull, .remoteFull, "\(server) has no space left for \(name).")
        case .noConnection, .connectionLost:
            return error(.transient, .connectionLost, "\(server) lost its own connection to where \(name) is.")
        case .noMedia: return error(.transient, .serverError, "\(server) has no medium where \(name) is.")
        case .lockConflict: return error(.transient, .serverError, "\(name) is locked at \(server).")
        case .fileExists: return .remoteFileExists(name, at: server)
        case .unsupported: return error(.unsupported, .unsupported, "\(server) can't do what \(name) needs.")
        case .isNoFolder, .invalidName, .linkLoop: return error(.permanent, .rejected, "\(server) can't have a file \(name).")
        case .invalidHandle, .endOfFile:
            return error(.protocolViolation, .badAnswer, "\(server) no longer knows \(name), which was open.")
        case .badMessage where isAboutPath:
            // OpenSSH's answer to what the system says of a name: that it is too long, or can't be.
            let length = name.utf8.split(separator: UInt8(ascii: "/")).map(\.count).max() ?? 0
            return error(
                .permanent, .rejected,
                "\(server) can't have a file \(name): a name of \(length) bytes may be too long there, or have characters that it can't have."
            )
        case .badMessage: return error(.protocolViolation, .badAnswer, "\(server) did not understand a request for \(name).")
        // Without any reason given it may be anything, and often something about the file: it does not speak against the server.
        case .failure: return error(.transient, .serverError, "\(server) failed at \(name), and does not say why.")
        default: return error(.protocolViolation, .serverError, "\(server) answers \(name) with the unknown status \(code.rawValue).")
        }
    }

    /// Whether it tells nothing but that the request failed.
    var isUnexplained: Bool { code == .failure && !meansFull }

    /// Some servers have no status of their own for it, and say it in words.
    private var meansFull: Bool {
        let words = message.lowercased()
        return ["no space", "disk full", "quota"].contains { words.contains($0) }
    }
}

extension StatusFailure {
    /// As ``Status/transferError(_:_:isAboutPath:at:)``.
    func transferError(_ name: String, _ use: FileUse, at server: String) -> TransferError {
        status.transferError(name, use, isAboutPath: isAboutPath, at: server)
    }
}

extension TransferError {
    static func isFolder(_ name: String, at server: String) -> TransferError {
        TransferError(.permanent, .remoteFileExists, "\(name) is a folder at \(server), so no file can take its place.")
    }

    static func remoteFileExists(_ name: String, at server: String) -> TransferError {
        TransferError(
            .permanent, .remoteFileExists,
            "\(name) exists already at \(server). Move it away, choose another name, or allow that it is replaced.")
    }
}

extension TransferError.Code {
    /// There is a file at the server already that an upload may not replace.
    static let remoteFileExists = Self(rawValue: "remoteFileExists")
}
