@testable import TransportSFTP

func fuzzSFTPPackets(_ input: [UInt8]) {
    var assembler = PacketAssembler()
    assembler.append(input)
    while let packet = try? assembler.next() { _ = try? ServerPacket(packet) }
}
