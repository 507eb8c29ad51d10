import Foundation
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTUS

/// Servers that speak the IETF protocol *Resumable Uploads for HTTP* and report arbitrary numbers, and files of arbitrary sizes, tested with a real
/// queue. The queue never traps, quarantines no session, and explains why each unfinished session has not completed.
@Suite(.timeLimit(.minutes(10)))
struct ResourceSizeTests {
    /// The field of the server's responses that contains the number.
    enum Field: String, CaseIterable, Sendable {
        /// `Upload-Offset` in an interim response to the creation.
        case interimOffset
        /// `Upload-Offset` in the final response to the creation.
        case creationOffset
        /// `Upload-Offset` in the response to `PATCH`.
        case patchOffset
        /// `Upload-Offset` in the response to `HEAD`.
        case headOffset
        /// `Upload-Length` in the response to `HEAD`.
        case headLength
        /// `Upload-Offset` in a 409 response to `PATCH`.
        case conflictOffset
        /// The offset in the problem document of a 409 response to `PATCH`.
        case expectedOffset
        /// `max-size` in an interim response to the creation.
        case maximumSize
        /// `min-size` in an interim response to the creation.
        case minimumSize
        /// `max-append-size` in the response to `OPTIONS`.
        case maximumAppendSize
        /// `min-append-size` in the response to `OPTIONS`, together with a `max-append-size` of 2.
        case minimumAppendSize
        /// `max-age` in the response to the creation. The server rejects the content, so the queue stores the time of the expiry.
        case maximumAge
        /// The `Content-Length` of the final response.
        case contentLength
        /// The `Content-Range` of the final response.
        case contentRange
    }

    /// The largest integer of a structured field (RFC 9651, section 3.3.1). A limit with a larger integer is invalid.
    private static let largestInteger: Int64 = 999_999_999_999_999
    private static let numbers = SizeMatrix.sizes + [largestInteger]
    /// The size of each file in bytes.
    private static let fileSize = 3

    /// Whether the upload of a file of ``fileSize`` bytes completes.
    private static func completes(_ field: Field, _ number: Int64) -> Bool {
        switch field {
        // The client ignores an offset beyond the file in an interim response, because the final response shows whether the upload is complete.
        case .interimOffset: true
        case .creationOffset, .headOffset: number == 0
        // The server does not complete the upload, or reports a conflict each time.
        case .patchOffset, .conflictOffset, .expectedOffset: false
        // No number equals the size of the file.
        case .headLength: false
        case .maximumSize: number > 0
        case .minimumSize: number == 0 || number > largestInteger
        case .maximumAppendSize, .minimumAppendSize: true
        case .maximumAge: false
        // Without the whole response, it is unknown whether the server has stored the file.
        case .contentLength: number == 0
        // The header has no meaning in this response.
        case .contentRange: true
        }
    }

    @Test(arguments: numbers, OverwritePolicy.allCases)
    func toleratesAnyNumber(number: Int64, policy: OverwritePolicy) async throws {
        let interop = try InteropFixture()
        let file = try interop.file("file", size: Self.fileSize)
        let server = try ScriptedServer { request, id in
            guard let field = request.path.split(separator: "/").first.flatMap({ Field(rawValue: String($0)) }) else {
                return [.answer(404)]
            }
            return ResourceSizeServer(request, id).steps(field, number)
        }
        let accounts = Field.allCases.map { Self.account($0.rawValue, at: server) }
        let options = SizeMatrix.options(policy)
        try await SizeMatrix.run(in: interop, accounts, over: TUSTransport()) { queue in
            var sessions: [SizeMatrix.Session] = []
            for (index, field) in Field.allCases.enumerated() {
                for count in SizeMatrix.counts(index, of: Field.allCases.count, number, policy) {
                    let items = try (0..<count).map { TransferItem(file, as: try RemotePath("\($0)")) }
                    let session = try await queue.enqueue(.upload(items: items, to: field.rawValue, options: options))
                    sessions.append(
                        SizeMatrix.Session(id: session.id) { status in
                            let isComplete = status.state == .completed
                            #expect(isComplete == Self.completes(field, number), "\(field), \(count) files: \(status)")
                            #expect((0...count).contains(Int(status.statistics.filesDone)), "\(field), \(count) files: \(status)")
                            guard isComplete else { return }
                            #expect(status.statistics.bytesDone == Int64(Self.fileSize * count), "\(field), \(count) files: \(status)")
                        })
                }
            }
            return sessions
        }
        server.stop()
    }

    /// The responses of a server to files of any size. The server reads no content of large files.
    enum Response: String, CaseIterable, Sendable {
        /// The server creates the upload, and then rejects the content of a large file. The upload's lifetime is as long as possible.
        case rejectsContent
        /// An interim response limits uploads to one byte, and the final response rejects the upload.
        case smallMaximum
        /// The server accepts only uploads of at least ``ResourceSizeTests/largestInteger`` bytes.
        case largeMinimum
        /// The server accepts only requests without content.
        case smallAppends
        /// The server requires that all requests except the last have exactly ``ResourceSizeTests/largestInteger`` bytes.
        case largeAppends
        /// The server's offset is larger than any file.
        case hugeOffset
        /// The server reports a conflict with an offset beyond any file.
        case hugeConflict
        /// The server reports an upload that is longer than any file.
        case hugeLength
        /// The response that completes the upload is incomplete.
        case hugeContentLength
    }

    /// Uploads one file, under several names, in several sessions. Only an empty file can arrive. The queue does not accept impossible sizes.
    @Test(arguments: SizeMatrix.sizes, OverwritePolicy.allCases)
    func toleratesAnyFileSize(size: Int64, policy: OverwritePolicy) async throws {
        let interop = try InteropFixture()
        let file = try #require(SizeMatrix.sparseFile(size, in: interop), "no file system of this machine supports files of \(size) bytes")
        defer { try? FileManager.default.removeItem(atPath: file.string) }
        let server = try ScriptedServer { request, id in
            guard let response = request.path.split(separator: "/").first.flatMap({ Response(rawValue: String($0)) }) else {
                return [.answer(404)]
            }
            return ResourceSizeServer(request, id).steps(response, Self.largestInteger)
        }
        let accounts = Response.allCases.map { Self.account($0.rawValue, at: server) }
        let options = SizeMatrix.options(policy)
        let acceptEmptyFiles: [Response] = [.rejectsContent, .smallAppends, .largeAppends]
        try await SizeMatrix.run(in: interop, accounts, over: TUSTransport()) { queue in
            var sessions: [SizeMatrix.Session] = []
            for (index, response) in Response.allCases.enumerated() {
                let completes = size == 0 && acceptEmptyFiles.contains(response)
                for count in SizeMatrix.counts(index, of: Response.allCases.count, size, policy) {
                    let account = response.rawValue
                    guard let id = try await SizeMatrix.enqueue(file, of: size, times: count, to: account, options, in: queue) else {
                        continue
                    }
                    sessions.append(
                        SizeMatrix.Session(id: id) { status in
                            #expect((status.state == .completed) == completes, "\(response), \(count) files: \(status)")
                        })
                }
            }
            return sessions
        }
        server.stop()
    }

    /// An account with an endpoint that uses the IETF protocol. The first component of the endpoint's path is the name of the account.
    private static func account(_ name: String, at server: ScriptedServer) -> Account {
        Account(name, endpoints: [.tus(server.url("/\(name)/"), credentials: [], options: TUSOptions(dialect: .ietf))])
    }
}
