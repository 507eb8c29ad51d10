import Crypto
import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportTUS

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Content whose checksums the server verifies (extension *checksum*).
@Suite struct ChecksumTests {
    private func upload(
        size: Int = 10, algorithms: String = "md5,sha1,sha256", offers: String = "creation,creation-with-upload,checksum",
        _ script: @escaping ScriptedServer.Script
    ) throws -> TestUpload {
        var upload = try TestUpload(size: size, offers: offers, features: ["Tus-Checksum-Algorithm": algorithms], script)
        upload.options.verification = .checksum
        return upload
    }

    private static func sha256(_ bytes: some Sequence<UInt8>) -> String {
        "sha256 \(Data(SHA256.hash(data: Array(bytes))).base64EncodedString())"
    }

    private static let simple: ScriptedServer.Script = { request, _ in [request.method == "POST" ? .created : .accepted(10)] }

    @Test func rejectsExpectedChecksumOfUpload() async throws {
        var upload = try upload(Self.simple)
        upload.options.expectedChecksum = "md5:781e5e245d69b566979b86e28d23f2c7"
        #expect(await upload.failure()?.failureClass == .unsupported)
        #expect(upload.server.requests.isEmpty)
        await upload.end()
    }

    /// The last response is lost, so the client does not know whether the server verified the checksum of the content.
    @Test func receiptHasNoChecksumAfterLostLastResponse() async throws {
        let upload = try upload(offers: "creation,checksum") { _, number in
            [[ServerStep.created], [.read(nil), .reset], [.offset(10, of: 10)]][number]
        }
        let receipt = try await upload.run()
        #expect(receipt.bytes == 10 && receipt.checksum == nil)
        await upload.end()
    }

    /// The server verifies a checksum only at the end of a request, so the stored bytes of an interrupted request are unverified.
    @Test func warnsAboutBytesOfInterruptedRequest() async throws {
        let upload = try upload(offers: "creation,checksum") { request, number in
            switch number {
            case 0: [.created]
            case 1: [.read(4), .reset]
            default: [request.method == "HEAD" ? .offset(4, of: 10) : .accepted(10)]
            }
        }
        #expect(await upload.failure()?.failureClass == .transient)
        let receipt = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.requests.last?.headers["upload-checksum"] == Self.sha256(TemporaryFile.content(size: 10).dropFirst(4)))
        #expect(receipt.warnings.count == 1 && receipt.warnings.first?.contains(" 4 bytes ") == true, "\(receipt.warnings)")
        await upload.end()
    }

    /// An earlier process was killed before it could read the offset, so the checkpoint does not include the stored bytes.
    @Test func warnsAboutBytesFoundByNextAttempt() async throws {
        let upload = try upload(offers: "creation,checksum") { request, _ in
            [request.method == "HEAD" ? .offset(4, of: 10) : .accepted(10)]
        }
        let receipt = try await upload.run(from: upload.checkpoint())
        #expect(receipt.warnings.count == 1)
        await upload.end()
    }

    @Test(arguments: [
        ("md5,sha1,sha256", "sha256"), ("md5,SHA1", "sha1"), ("crc32,md5", "md5"), ("crc32, sha256 ,x", "sha256"),
    ])
    func choosesBestAlgorithm(algorithms: String, expected: String) async throws {
        let upload = try upload(algorithms: algorithms, Self.simple)
        let receipt = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH"], "a creation does not include content that must be verified")
        let content = TemporaryFile.content(size: 10)
        let digest: [UInt8] =
            switch expected {
            case "sha256": Array(SHA256.hash(data: content))
            case "sha1": Array(Insecure.SHA1.hash(data: content))
            default: Array(Insecure.MD5.hash(data: content))
            }
        #expect(upload.requests[1].headers["upload-checksum"] == "\(expected) \(Data(digest).base64EncodedString())")
        let hex = digest.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        #expect(receipt.checksum == "\(expected):\(hex)")
        await upload.end()
    }

    @Test(arguments: [("sha256", "creation"), ("crc32", "creation,checksum"), ("", "creation,checksum")])
    func sendsNoContentIfServerCannotVerifyIt(algorithms: String, offers: String) async throws {
        let upload = try upload(algorithms: algorithms, offers: offers) { request, number in
            request.method == "GET" ? [.answer(405)] : request.method == "DELETE" ? [.tus(204)] : Self.simple(request, number)
        }
        let error = await upload.failure()
        #expect(error?.failureClass == .unsupported)
        #expect(upload.methods == ["POST", "GET", "DELETE"], "the server does not allow downloads for a comparison")
        await upload.end()
    }

    @Test func comparesChecksumsOnlyIfRequested() async throws {
        var upload = try upload(offers: "creation,checksum", Self.simple)
        upload.options.verification = .size
        #expect(try await upload.run().checksum == nil)
        #expect(upload.requests.allSatisfy { $0.headers["upload-checksum"] == nil })
        await upload.end()
    }

    @Test func eachChunkHasChecksum() async throws {
        let content = TemporaryFile.content(size: 1000)
        var upload = try upload(size: 1000) { request, _ in
            request.method == "POST"
                ? [.created] : [.accepted((Int(request.headers["upload-offset"] ?? "") ?? 0) + request.contentLength)]
        }
        upload.options.chunkSize = 400
        let receipt = try await upload.run()
        #expect(
            upload.requests.dropFirst().map { $0.headers["upload-checksum"] }
                == [Self.sha256(content[..<400]), Self.sha256(content[400..<800]), Self.sha256(content[800...])])
        let whole = SHA256.hash(data: content).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        #expect(receipt.checksum == "sha256:\(whole)")
        await upload.end()
    }

    @Test func splitsLargeFileIntoRequestsOfAtMost8MiB() async throws {
        let size = 9 << 20
        let upload = try upload(size: size) { request, _ in
            request.method == "POST"
                ? [.created] : [.accepted((Int(request.headers["upload-offset"] ?? "") ?? 0) + request.contentLength)]
        }
        _ = try await upload.run()
        #expect(upload.requests.map(\.contentLength) == [0, 8 << 20, 1 << 20])
        #expect(upload.requests[2].headers["upload-checksum"] == Self.sha256(upload.requests[2].body))
        await upload.end()
    }

    @Test func resumedUploadComparesRemainingBytes() async throws {
        let upload = try upload(size: 1000) { request, _ in request.method == "HEAD" ? [.offset(300)] : [.accepted(1000)] }
        let receipt = try await upload.run(from: try upload.checkpoint())
        #expect(upload.requests[1].headers["upload-checksum"] == Self.sha256(TemporaryFile.content(size: 1000)[300...]))
        #expect(receipt.checksum == nil, "this attempt did not compare the whole content")
        await upload.end()
    }

    @Test(arguments: [1, 2]) func sendsAgainAfterMismatch(times: Int) async throws {
        let count = Locked(0)
        let upload = try upload { request, _ in
            switch request.method {
            case "POST": return [.created]
            case "HEAD": return [.offset(0)]
            default:
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                return [number <= times ? .tus(460) : .accepted(10)]
            }
        }
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH"] + Array(repeating: ["HEAD", "PATCH"], count: times).flatMap { $0 })
        await upload.end()
    }

    @Test func failsAfterRepeatedMismatches() async throws {
        let upload = try upload { request, _ in
            [request.method == "POST" ? .created : request.method == "HEAD" ? .offset(0) : .tus(460)]
        }
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent)
        #expect(error?.code == .checksumMismatch)
        #expect(upload.methods == ["POST"] + Array(repeating: ["PATCH", "HEAD"], count: 3).flatMap { $0 }, "the upload is not removed")
        // The client reads the content again for each request. The content has not changed.
        let patches = upload.requests.filter { $0.method == "PATCH" }
        #expect(patches.allSatisfy { $0.body == TemporaryFile.content(size: 10) && $0.headers["upload-offset"] == "0" })
        #expect(patches.allSatisfy { $0.headers["upload-checksum"] == Self.sha256(TemporaryFile.content(size: 10)) })
        await upload.end()
    }

    @Test func failsIfServerKeepsContentDespiteMismatch() async throws {
        let upload = try upload { request, _ in
            [request.method == "POST" ? .created : request.method == "HEAD" ? .offset(10) : .tus(460)]
        }
        #expect(await upload.failure()?.code == .checksumMismatch)
        await upload.end()
    }

    /// The file changes before the client sends the content again. The upload must not mix two versions of the file.
    @Test(arguments: [1, 2], [true, false]) func detectsChangedSource(mismatches: Int, keepsTime: Bool) async throws {
        let file = Locked<TemporaryFile?>(nil)
        let count = Locked(0)
        let upload = try upload { request, _ in
            switch request.method {
            case "POST": return [.created]
            case "HEAD": return [.offset(0)]
            case "DELETE": return [.tus(204)]
            default:
                let isLast = count.withLock { count in
                    count += 1
                    return count == mismatches
                }
                guard isLast else { return [.tus(460)] }
                return [.read(nil), .call { try? file.withLock { try $0?.rewrite(keepingTime: keepsTime) } }, .tus(460)]
            }
        }
        file.withLock { $0 = upload.file }
        #expect(await upload.failure()?.failureClass == .sourceChanged)
        let cycles = Array(repeating: ["PATCH", "HEAD"], count: mismatches).flatMap { $0 }
        #expect(upload.methods == ["POST"] + cycles + ["DELETE"])
        await upload.end()
    }

    /// The client computes a checksum in a trailer while it sends the content.
    @Test(arguments: [true, false]) func detectsChangedSourceWithTrailers(keepsTime: Bool) async throws {
        let file = Locked<TemporaryFile?>(nil)
        let upload = try upload(offers: "creation,checksum,checksum-trailer") { request, number in
            switch request.method {
            case "POST": return [.created]
            case "HEAD": return [.offset(0)]
            case "DELETE": return [.tus(204)]
            default:
                guard number == 1 else { return [.tus(460)] }
                return [.read(nil), .call { try? file.withLock { try $0?.rewrite(keepingTime: keepsTime) } }, .tus(460)]
            }
        }
        file.withLock { $0 = upload.file }
        #expect(await upload.failure()?.failureClass == .sourceChanged)
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "PATCH"] + ["DELETE"])
        await upload.end()
    }
}

extension TemporaryFile {
    /// Changes the content and keeps the size. Optionally restores the modification time (futimens(3)).
    fileprivate func rewrite(keepingTime: Bool) throws {
        let time = try source.identity.modificationTime
        try write([UInt8](repeating: 7, count: Int(try source.size)))
        guard keepingTime else { return }
        let file = try FileDescriptor.open(path, .writeOnly)
        try file.closeAfter {
            let stamp = timespec(tv_sec: time_t(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
            guard unsafe futimens(file.rawValue, [stamp, stamp]) == 0 else { throw Errno(rawValue: errno) }
        }
    }
}
