package import TransferCore

/// The purpose of a request for a file. The meaning of a status depends on the purpose.
package enum FileUse: Sendable {
    case upload
    case download
}

extension Status {
    /// Returns the error for a rejected request.
    ///
    /// - Parameters:
    ///   - name: The name of the file as shown in messages.
    ///   - use: The purpose of the request.
    ///   - isAboutPath: Whether the request named a path, rather than the handle of an open file or folder.
    ///   - server: The name of the server as shown in messages.
    package func transferError(_ name: String, _ use: FileUse, isAboutPath: Bool = false, at server: String) -> TransferError {
        func error(_ failureClass: FailureClass, _ code: TransferError.Code, _ message: String) -> TransferError {
            TransferError(failureClass, code, message, cause: self.message.isEmpty ? nil : self.message)
        }
        switch code {
        case .noSuchFile where use == .download, .noSuchPath where use == .download:
            return error(.permanent, .noSuchRemoteFile, "\(server) has no file \(name).")
        case .noSuchFile, .noSuchPath:
            return error(.permanent, .noSuchRemoteFile, "\(server) has no folder for \(name), and it can't be created.")
        case .permissionDenied:
            return error(
                .permanent, .forbidden,
                "\(server) does not let this account \(use == .upload ? "write" : "read") \(name); change its permissions on the server.")
        case .writeProtected:
            return error(.permanent, .forbidden, "\(name) can't be written at \(server): its file system is read-only.")
        case .noSpace: return error(.remoteFull, .remoteFull, "\(server) has no space left for \(name).")
        case .quotaExceeded:
            return error(.remoteFull, .remoteFull, "The quota of this account at \(server) is used up; \(name) does not fit.")
        case .failure where meansFull: return error(.remoteFull, .remoteFull, "\(server) has no space left for \(name).")
        case .noConnection, .connectionLost:
            return error(.transient, .connectionLost, "\(server) lost its connection to the storage that holds \(name).")
        case .noMedia: return error(.transient, .serverError, "\(server) has no medium in the drive for \(name).")
        case .lockConflict: return error(.transient, .serverError, "\(name) is locked at \(server).")
        case .fileExists: return .remoteFileExists(name, at: server)
        case .unsupported:
            return error(.unsupported, .unsupported, "\(server) does not support an operation that the transfer of \(name) requires.")
        case .notAFolder, .invalidName, .linkLoop: return error(.permanent, .rejected, "\(server) can't access a file named \(name).")
        case .invalidHandle, .endOfFile:
            return error(.protocolViolation, .invalidResponse, "\(server) lost the open file \(name).")
        case .badMessage where isAboutPath:
            // OpenSSH's server sends this status for a name that is too long or invalid.
            let length = name.utf8.split(separator: UInt8(ascii: "/")).map(\.count).max() ?? 0
            return error(
                .permanent, .rejected,
                "\(server) can't access a file named \(name): the name may be too long (\(length) bytes) or contain forbidden characters."
            )
        case .badMessage: return error(.protocolViolation, .invalidResponse, "\(server) rejected a request for \(name) as malformed.")
        // A failure without a reason often concerns only the file, so the error's class must not make the queue avoid the endpoint.
        case .failure: return error(.transient, .serverError, "A request for \(name) failed at \(server), which gave no reason.")
        default:
            return error(
                .protocolViolation, .serverError, "\(server) responded to a request for \(name) with the unknown status \(code.rawValue).")
        }
    }

    var isUnexplained: Bool { code == .failure && !meansFull }

    /// Whether the message reports a full disk or an exceeded quota. Some servers have no status for these failures.
    private var meansFull: Bool {
        let words = message.lowercased()
        return ["no space", "disk full", "quota"].contains { words.contains($0) }
    }
}

extension StatusFailure {
    func transferError(_ name: String, _ use: FileUse, at server: String) -> TransferError {
        status.transferError(name, use, isAboutPath: isAboutPath, at: server)
    }
}

extension TransferError {
    static func remoteFolderExists(_ name: String, at server: String) -> TransferError {
        TransferError(.permanent, .remoteFileExists, "\(name) is a folder at \(server), so a file can't replace it.")
    }

    static func remoteFileExists(_ name: String, at server: String) -> TransferError {
        TransferError(
            .permanent, .remoteFileExists,
            "\(name) already exists at \(server). Move it, choose another name, or change the overwrite policy.")
    }
}

extension TransferError.Code {
    static let remoteFileExists = Self(rawValue: "remoteFileExists")
}
