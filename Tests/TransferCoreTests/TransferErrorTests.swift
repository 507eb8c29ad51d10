import Foundation
import Testing
import TransferCore

@Suite struct TransferErrorTests {
    @Test func localizedDescriptionIsMessage() {
        let error: any Error = TransferError(.permanent, .unsafeName, "The name is empty.", cause: "EINVAL")
        #expect(error.localizedDescription == "The name is empty. (EINVAL)")
    }
}
