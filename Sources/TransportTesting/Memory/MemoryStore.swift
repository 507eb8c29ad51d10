import Foundation
import TransferCore

/// The other end: what has arrived.
struct MemoryStore: Sendable {
    struct Upload: Sendable {
        let address: String
        let path: RemotePath
        var content = Data()
        var isComplete = false
    }

    private(set) var uploads: [String: Upload] = [:]
    /// The IDs in the order of their creation.
    private var order: [String] = []

    mutating func create(at address: String, _ path: RemotePath) -> String {
        let id = "upload-\(order.count + 1)"
        order.append(id)
        uploads[id] = Upload(address: address, path: path)
        return id
    }

    mutating func append(_ data: Data, to id: String) {
        uploads[id]?.content.append(data)
    }

    mutating func complete(_ id: String) {
        uploads[id]?.isComplete = true
    }

    /// Forgets an upload unless it is complete, as what is complete is the receiver's.
    mutating func discard(_ id: String) {
        if uploads[id]?.isComplete == false { uploads[id] = nil }
    }

    /// How many bytes of an upload there are; nil if there is no such upload.
    func size(of id: String) -> Int64? {
        uploads[id].map { Int64($0.content.count) }
    }

    /// The latest upload of a name that fits.
    func latest(_ path: String, at address: String?, where fits: (Upload) -> Bool = { _ in true }) -> Upload? {
        for id in order.reversed() {
            guard let upload = uploads[id], upload.path.description == path, address == nil || upload.address == address else { continue }
            if fits(upload) { return upload }
        }
        return nil
    }

    /// The names that are complete, in the order of their creation.
    var completePaths: [RemotePath] {
        order.compactMap { uploads[$0] }.filter(\.isComplete).map(\.path)
    }
}
