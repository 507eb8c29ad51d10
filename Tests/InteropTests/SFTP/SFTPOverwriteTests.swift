import Foundation
import SSHFixture
import SystemPackage
import Testing
import TransferCore

@Suite(.timeLimit(.minutes(10)))
struct SFTPOverwriteTests {
    /// The existing file at the target name, compared with the transferred file.
    enum ExistingFile: CaseIterable {
        case nothing
        case same
        case older
        case newer
        case larger
    }

    private static let content = Data("transferred content".utf8)
    private static let time = Date(timeIntervalSince1970: 1_700_000_000)

    private static func write(_ content: Data, at time: Date, to url: URL) throws {
        try content.write(to: url)
        try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: url.path)
    }

    private static func make(_ found: ExistingFile, at url: URL) throws {
        // This content has the same length as the transferred content.
        let other = Data("the content before.".utf8)
        switch found {
        case .nothing: break
        case .same: try write(other, at: time, to: url)
        case .older: try write(other, at: time - 10, to: url)
        case .newer: try write(other, at: time + 10, to: url)
        case .larger: try write(other + other, at: time, to: url)
        }
    }

    /// Whether a policy replaces the existing file, according to the table in the documentation of `OverwritePolicy`.
    private static func replaces(_ policy: OverwritePolicy, _ found: ExistingFile) -> Bool {
        switch policy {
        case .always: true
        case .different: found != .same
        case .newer: found == .older
        case .never, .skip, .rename: false
        }
    }

    @Test(arguments: OverwritePolicy.allCases, [true, false]) func appliesOverwritePolicy(policy: OverwritePolicy, isUpload: Bool)
        async throws
    {
        let folder = try await SFTPServerFolder()
        let (from, to) = isUpload ? (folder.local, folder.files) : (folder.files, folder.local)
        for found in ExistingFile.allCases {
            let name = "\(found).bin"
            let target = to.appending(path: name)
            try Self.write(Self.content, at: Self.time, to: from.appending(path: name))
            try Self.make(found, at: target)
            let before = try? Data(contentsOf: target)
            let payload: FileAttempt.Payload =
                isUpload
                ? .upload(try folder.source(name))
                : .download(
                    DownloadDestination(
                        root: FilePath(folder.local.path), name: FilePath(name), partName: FilePath(".\(name).part"), overwrite: policy))
            let transfer = { try await folder.transfer(payload, name, AttemptOptions(overwrite: policy)) }
            if policy == .never && found != .nothing {
                let error = await #expect(throws: TransferError.self) { try await transfer() }
                #expect(error?.failureClass == .permanent, "\(found): \(error?.description ?? "")")
                #expect(error?.code.rawValue == (isUpload ? "remoteFileExists" : "fileExists"), "\(found)")
            } else {
                let receipt = try await transfer()
                let isTransferred = found == .nothing || Self.replaces(policy, found) || policy == .rename
                let expected = isTransferred ? Self.content : before
                let path = isUpload ? receipt.remoteURL.flatMap { URL(string: $0)?.path } : receipt.localPath?.string ?? target.path
                #expect(try Data(contentsOf: URL(filePath: try #require(path))) == expected, "\(found)")
                if isTransferred { #expect(receipt.bytes == Int64(Self.content.count), "\(found)") }
            }
            let isReplaced = found == .nothing || Self.replaces(policy, found)
            #expect(try Data(contentsOf: target) == (isReplaced ? Self.content : before), "\(found)")
            let numbered = policy == .rename && found != .nothing ? ["\(found) (1).bin"] : []
            // Ignores the part files of downloads, which the queue would remove.
            let names = try FileManager.default.contentsOfDirectory(atPath: to.path).filter { isUpload || !$0.hasSuffix(".part") }
            #expect(names.sorted() == ([name] + numbered).sorted(), "\(found)")
            for name in [name] + numbered { try FileManager.default.removeItem(at: to.appending(path: name)) }
        }
        await folder.close()
    }
}
