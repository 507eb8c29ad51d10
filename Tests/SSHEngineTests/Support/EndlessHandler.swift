import SSHEngine
import TransferCore

/// Sends endlessly, and records the number of received bytes and the end of the channel.
final class EndlessHandler: SSHChannelHandler {
    let recorder = TestHandler(storesBytes: false)
    private let block = [UInt8](repeating: 0x55, count: 32_000)

    func receive(_ bytes: UnsafeRawBufferPointer) { unsafe recorder.receive(bytes) }
    func bytesToSend() -> [UInt8] { block }
    func end(_ error: TransferError?) { recorder.end(error) }
}
