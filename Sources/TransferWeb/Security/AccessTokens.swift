import Crypto
import Foundation
import SystemPackage
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A client's access to the queue. A client with the access `write` can also read.
enum Access: Sendable {
    case read
    case write
}

/// The two tokens of a web server: one for full access, one for reading.
struct AccessTokens: Sendable {
    static let (fileName, readFileName) = ("web.token", "web-read.token")
    /// The maximum size of a token file, in bytes.
    private static let maximumSize = 4_096

    /// The token for full access.
    let token: String
    let readToken: String

    /// Reads the tokens, and creates missing tokens. Blocks.
    ///
    /// - Throws: A ``WebServerError`` if the folder or a file can't be created, if a file can't be read, if other users can access it, or if its
    ///   token is too short.
    static func load(from folder: FilePath) throws(WebServerError) -> AccessTokens {
        do {
            // The server can start before any owner of the queue has created the folder.
            try FileManager.default.createDirectory(
                atPath: folder.string, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw WebServerError("Cannot create \(folder): \(error.localizedDescription)")
        }
        return AccessTokens(
            token: try load(folder.appending(fileName)), readToken: try load(folder.appending(readFileName)))
    }

    private static func load(_ path: FilePath) throws(WebServerError) -> String {
        do {
            if !FileManager.default.fileExists(atPath: path.string) { try create(path) }
            let text = String(decoding: try PrivateFile.read(path, as: "token file", limit: maximumSize), as: UTF8.self)
                .trimmingCharacters(in: .whitespacesAndNewlines)
            guard text.utf8.count >= 32 else {
                throw WebServerError("The token in \(path) is shorter than 32 characters. Remove the file to create a new token.")
            }
            return text
        } catch let error as WebServerError {
            throw error
        } catch let error as TransferError {
            throw WebServerError(error.message)
        } catch {
            throw WebServerError("Cannot create \(path): \(error).")
        }
    }

    /// Creates a token file. Another process can create the same file at the same time, so the file gets its name only when it is complete.
    private static func create(_ path: FilePath) throws {
        let temporary = FilePath(path.string + "-" + UUID().uuidString)
        let file = try FileDescriptor.open(
            temporary, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec], permissions: .ownerReadWrite)
        defer { _ = unsafe unlink(temporary.string) }
        try file.closeAfter {
            var generator = SystemRandomNumberGenerator()
            let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
            _ = try file.writeAll(Array((hexadecimal(bytes) + "\n").utf8))
            guard fsync(file.rawValue) == 0 else { throw Errno(rawValue: errno) }
        }
        guard unsafe link(temporary.string, path.string) == 0 || errno == EEXIST else { throw Errno(rawValue: errno) }
    }

    func access(bearer: String) -> Access? {
        // Hashes have the same length, and their comparison takes the same time for all values.
        let digest = SHA256.hash(data: Data(bearer.utf8))
        if digest == SHA256.hash(data: Data(token.utf8)) { return .write }
        return digest == SHA256.hash(data: Data(readToken.utf8)) ? .read : nil
    }

    func access(cookie: String) -> Access? {
        let digest = SHA256.hash(data: Data(cookie.utf8))
        return [Access.write, .read].first { digest == SHA256.hash(data: Data(self.cookie(for: $0).utf8)) }
    }

    /// The value of the cookie for a client with this access. The value is derived from the token, so it stays valid after a restart, and does
    /// not reveal the token.
    func cookie(for access: Access) -> String { derived("cookie", for: access) }

    /// The hidden value in the forms of the page. Other sites can't know this value, so they can't forge a form.
    func formToken(for access: Access) -> String { derived("form", for: access) }

    private func derived(_ purpose: String, for access: Access) -> String {
        let key = SymmetricKey(data: Data((access == .write ? token : readToken).utf8))
        return Self.hexadecimal(Array(HMAC<SHA256>.authenticationCode(for: Data(purpose.utf8), using: key)))
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
