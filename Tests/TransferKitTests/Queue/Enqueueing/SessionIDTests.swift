import Foundation
import Testing
import TransferKit

@Suite struct SessionIDTests {
    @Test func descriptionIsLowercaseUUID() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<1_000 {
            var bytes = [UInt8](repeating: 0, count: 16)
            for index in bytes.indices { bytes[index] = .random(in: 0...255, using: &random) }
            let uuid = UUID(
                uuid: (
                    bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8], bytes[9], bytes[10],
                    bytes[11],
                    bytes[12], bytes[13], bytes[14], bytes[15]
                ))
            let id = SessionID(uuid: uuid)
            #expect(id.description == uuid.uuidString.lowercased())
            #expect(SessionID(id.description) == id)
        }
    }
}
