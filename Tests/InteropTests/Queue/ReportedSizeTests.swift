import Foundation
import Locking
import Logging
import ScriptedHTTP
import ScriptedSFTP
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportHTTP
import TransportSFTP
import TransportTUS

/// Servers that report arbitrary file sizes, tested with a real queue. The queue never traps, quarantines no session, and explains why each
/// unfinished session has not completed.
@Suite(.timeLimit(.minutes(10)))
struct ReportedSizeTests {
    /// The protocol field that contains the size.
    enum Field: CaseIterable, Sendable {
        case contentLength
        case contentRange
        /// The `Content-Length` of a download, or the `Upload-Offset` of an upload.
        case tus
        /// The attributes of a file.
        case sftp
    }

    /// The modification time of the remote files, which is later than the times of the local files.
    private static let modified = (date: "Sat, 01 Jan 2050 00:00:00 GMT", seconds: 2_524_608_000)

    /// The sizes that a server also reports for 200 files of one session. Each transport has one such session for each size. The field, the direction
    /// and the overwrite policy differ from size to size.
    private static func sizesOfManyFiles(_ field: Field, _ policy: OverwritePolicy, isUpload: Bool) -> [Int64] {
        let (sizes, policies) = (SizeMatrix.sizes, OverwritePolicy.allCases)
        return sizes.indices.filter { index in
            let isChosen =
                switch field {
                case .contentLength: index.isMultiple(of: 2)
                case .contentRange: !index.isMultiple(of: 2)
                case .tus: index.isMultiple(of: 2) == isUpload
                case .sftp: index.isMultiple(of: 2) != isUpload
                }
            return isChosen && policies[index % policies.count] == policy
        }.map { sizes[$0] }
    }

    @Test(arguments: Field.allCases, OverwritePolicy.allCases)
    func toleratesAnyReportedDownloadSize(_ field: Field, _ policy: OverwritePolicy) async throws {
        try await transfer(field, policy, isUpload: false) { queue, interop, size, count, options in
            let target = interop.folder.appending(path: "\(size) of \(count)")
            try FileManager.default.createDirectory(at: target, withIntermediateDirectories: false)
            if policy != .never {
                for number in 0..<count { try Data("old".utf8).write(to: target.appending(path: "\(number)")) }
            }
            return try await queue.enqueue(
                .download((0..<count).map { try RemotePath("\($0)") }, from: "\(size)", to: FilePath(target.path), options: options))
        } check: { status, size, count in
            if size == 0 || policy == .skip && SizeMatrix.isPossible(size, count: count) {
                #expect(status.state == .completed && status.statistics.filesDone == count, "\(size) of \(count): \(status)")
                #expect(status.statistics.bytesDone == size * Int64(count), "\(size) of \(count)")
            } else {
                #expect(status.state != .completed, "\(size) of \(count)")
            }
        }
    }

    /// Excludes plain HTTP, whose servers do not report the size of an upload.
    @Test(arguments: [Field.tus, .sftp], OverwritePolicy.allCases)
    func toleratesAnyReportedUploadSize(_ field: Field, _ policy: OverwritePolicy) async throws {
        try await transfer(field, policy, isUpload: true) { queue, interop, size, count, options in
            let files = try (0..<count).map { try interop.file("\($0)", size: 3) }
            return try await queue.enqueue(.upload(files, to: "\(size)", options: options))
        } check: { status, size, count in
            let keepsExistingFile = field == .sftp && (policy == .skip || policy == .newer) && size <= FileSize.maximum
            #expect((status.state == .completed) == keepsExistingFile, "\(size) of \(count): \(status)")
        }
    }

    /// Runs sessions in one queue, one for each combination of a size and a number of files. Then reopens the queue.
    private func transfer(
        _ field: Field, _ policy: OverwritePolicy, isUpload: Bool,
        enqueue: (TransferQueue, InteropFixture, Int64, Int, SessionOptions) async throws -> TransferSession,
        check: @escaping (SessionStatus, Int64, Int) -> Void
    ) async throws {
        let interop = try InteropFixture()
        let server = try Server(field, policy)
        let accounts = SizeMatrix.sizes.map { Account("\($0)", endpoints: [server.endpoint($0)]) }
        let manySizes = Self.sizesOfManyFiles(field, policy, isUpload: isUpload)
        let options = SizeMatrix.options(policy, segmentsPerFile: field == .contentRange ? 4 : 1)
        try await SizeMatrix.run(in: interop, accounts, over: server.transport) { queue in
            var sessions: [SizeMatrix.Session] = []
            for size in SizeMatrix.sizes {
                for count in [1, 17] + (manySizes.contains(size) ? [200] : []) {
                    let session = try await enqueue(queue, interop, size, count, options)
                    sessions.append(SizeMatrix.Session(id: session.id) { check($0, size, count) })
                }
            }
            return sessions
        }
        server.stop()
    }

    /// A server that reports the size in the first component of each file's path.
    private struct Server {
        let transport: any Transport
        let endpoint: (Int64) -> Endpoint
        let stop: () -> Void

        init(_ field: Field, _ policy: OverwritePolicy) throws {
            guard field != .sftp else {
                transport = SFTPTransport(connector: SizeConnector(policy: policy))
                endpoint = { .sftp("sftp://me@peer/\($0)/") }
                stop = {}
                return
            }
            let server = try ScriptedServer { request, _ in Self.steps(request, field, policy) }
            transport = field == .tus ? TUSTransport() : HTTPTransport()
            endpoint = {
                field == .tus
                    ? .tus(server.url("/\($0)/"), credentials: []) : .http("http+get://127.0.0.1:\(server.port)/\($0)/")
            }
            stop = { server.stop() }
        }

        /// Whether the server sends content. It sends none if the local disk might have room for the file, because the download would then
        /// reserve the whole size.
        static func sendsContent(_ size: Int64, _ policy: OverwritePolicy) -> Bool { policy == .skip || size >= (1 << 56) - 1 }

        private static func steps(_ request: ReceivedRequest, _ field: Field, _ policy: OverwritePolicy) -> [ServerStep] {
            let size = request.path.split(separator: "/").first.flatMap { Int64($0) } ?? 0
            switch request.method {
            case "GET": break
            case "POST": return [.tus(201, ["Location": "/\(size)/1"])]
            case "PATCH": return [.tus(204, ["Upload-Offset": "\(size)"])]
            case "HEAD": return [.tus(200, ["Upload-Offset": "\(size)", "Upload-Length": "\(size)"])]
            default: return [.answer(404)]
            }
            let known = "ETag: \"v1\"\r\nLast-Modified: \(modified.date)\r\n"
            let content = size > 0 && sendsContent(size, policy) ? "0123456789" : ""
            guard field == .contentRange, size > 0 else {
                return [.raw("HTTP/1.1 200 Scripted\r\n\(known)Content-Length: \(size)\r\n\r\n\(content)"), .close]
            }
            let range = "Content-Range: bytes 0-9/\(size)\r\nContent-Length: 10\r\n"
            return [.raw("HTTP/1.1 206 Scripted\r\n\(known)\(range)\r\n\(content)"), .close]
        }
    }

    /// Connects to a new scripted server each time. The server reports the size that the path contains.
    private struct SizeConnector: SFTPConnector {
        let policy: OverwritePolicy

        func connect(to endpoint: Endpoint, credentials: any CredentialProvider, logger: Logger) async throws -> any SFTPLink {
            let opened = Locked<[Int64]>([])
            return ScriptedPeer { request in
                let id = request.id
                let name = String(decoding: request.body.dropFirst(4).prefix { $0 > 0 }, as: UTF8.self)
                let size = name.split(separator: "/").first.flatMap { Int64($0) } ?? 0
                switch request.type {
                case .lstat where policy == .never: return [ScriptedPeer.status(id, .noSuchFile)]
                case .stat, .lstat: return [attributes(id, size)]
                case .open:
                    let isDownload = !name.contains(".tq-")
                    if isDownload, size > 0, !Server.sendsContent(size, policy) { return [ScriptedPeer.status(id, .permissionDenied)] }
                    let handle = opened.withLock { opened in
                        opened.append(size)
                        return opened.count - 1
                    }
                    return [ScriptedPeer.packet(.handle, ScriptedPeer.number(Int(id)), ScriptedPeer.number(4), ScriptedPeer.number(handle))]
                case .fstat:
                    let handle = request.body.suffix(4).reduce(0) { $0 << 8 | Int($1) }
                    return [attributes(id, opened.withLock { $0[handle] })]
                case .read: return [ScriptedPeer.status(id, .endOfFile)]
                default: return [ScriptedPeer.status(id, .ok)]
                }
            }
        }

        private func attributes(_ id: UInt32, _ size: Int64) -> [UInt8] {
            ScriptedPeer.attributes(id, size: UInt64(size), modified: modified.seconds)
        }
    }
}
