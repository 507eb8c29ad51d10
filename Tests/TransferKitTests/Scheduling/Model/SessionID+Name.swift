import Foundation
import TransferKit

/// Readable session IDs for tests. The 16 bytes of the UUID contain the name in UTF-8.
extension SessionID {
    init(named name: String) {
        let bytes = Array(name.utf8.prefix(16)) + Array(repeating: 0, count: max(0, 16 - name.utf8.count))
        self.init(uuid: unsafe bytes.withUnsafeBytes { unsafe $0.loadUnaligned(as: UUID.self) })
    }

    var testName: String {
        unsafe withUnsafeBytes(of: uuid) { unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
