import Testing
import TransportSFTP

@Suite struct CodecTests {
    private static func packet(_ type: PacketType, _ fields: [UInt8]...) -> [UInt8] {
        let body = [type.rawValue] + fields.flatMap { $0 }
        return number(body.count) + body
    }

    private static func number(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }

    private static func text(_ bytes: [UInt8]) -> [UInt8] { number(bytes.count) + bytes }

    private static func decode(_ packet: [UInt8]) throws -> ServerPacket? {
        var assembler = PacketAssembler()
        assembler.append(packet)
        return try assembler.next().map { try ServerPacket($0) }
    }

    @Test func encodesRequestsAccordingToDraft() {
        let handle = Handle([0, 0, 0, 7])
        #expect(Request.initialize == [0, 0, 0, 5, 1, 0, 0, 0, 3])
        #expect(
            Request.open([0x61], [.write, .create]).encoded(id: 258) == [
                0, 0, 0, 18, 3, 0, 0, 1, 2, 0, 0, 0, 1, 0x61, 0, 0, 0, 0x0A, 0, 0, 0, 0,
            ])
        #expect(
            Request.write(handle, offset: 1 << 32 | 5, [9, 8]).encoded(id: 1)
                == [0, 0, 0, 27, 6, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 2, 9, 8])
        #expect(
            Request.read(handle, offset: 3, count: 4).encoded(id: 1)
                == [0, 0, 0, 25, 5, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4])
        #expect(
            Request.fsync(handle).encoded(id: 1)
                == Self.packet(.extended, Self.number(1), Self.text(Array("fsync@openssh.com".utf8)), Self.text(handle.bytes)))
        #expect(
            Request.fsetstat(handle, .size(258)).encoded(id: 1)
                == Self.packet(.fsetstat, Self.number(1), Self.text(handle.bytes), Self.number(1), [0, 0, 0, 0, 0, 0, 1, 2]))
    }

    @Test func decodesExtensionsInVersionPacket() throws {
        let packet = Self.packet(
            .version, Self.number(3), Self.text(Array("fsync@openssh.com".utf8)), Self.text([0x31]), Self.text(Array("other".utf8)),
            Self.text([]))
        guard case .version(let features)? = try Self.decode(packet) else { throw UnexpectedPacket() }
        #expect(features.version == 3)
        #expect(features.offers(.fsync) && !features.offers(.posixRename))
        #expect(features.extensions == ["fsync@openssh.com", "other"])
    }

    @Test func preservesBytesOfNames() throws {
        let name: [UInt8] = [0x61, 0xFF, 0x2E, 0x2E]
        let packet = Self.packet(
            .name, Self.number(9), Self.number(1), Self.text(name), Self.text([]), Self.number(0x8000_0001), [0, 0, 0, 1, 0, 0, 0, 0],
            Self.number(1), Self.text([1]), Self.text([2]))
        guard case .response(9, .names(let names))? = try Self.decode(packet) else { throw UnexpectedPacket() }
        #expect(names.map(\.name) == [name])
        #expect(names.first?.attributes.size == 1 << 32)
    }

    @Test func decodesStatusText() throws {
        let packet = Self.packet(.status, Self.number(1), Self.number(4), Self.text(Array("No space\nleft".utf8)), Self.text([]))
        #expect(try Self.decode(packet) == .response(id: 1, .status(Status(.failure, "No space left"))))
        #expect(try Self.decode(Self.packet(.status, Self.number(1), Self.number(0))) == .response(id: 1, .status(Status(.ok))))
    }

    @Test func rejectsInvalidLengthsAndCounts() {
        let broken: [[UInt8]] = [
            [0, 0, 0, 0], [0x7F, 0xFF, 0xFF, 0xFF], Self.number(PacketLimit.packet + 1),
            Self.packet(.handle, Self.number(1), Self.text([UInt8](repeating: 0, count: 257))),
            Self.packet(.data, Self.number(1), Self.number(5), [1, 2, 3, 4]),
            Self.packet(.name, Self.number(1), Self.number(1_000_000)),
            Self.packet(
                .name, Self.number(1), Self.number(1), Self.text([UInt8](repeating: 0x61, count: 4097)), Self.text([]), Self.number(0)),
            Self.packet(.attributes, Self.number(1), Self.number(0x8000_0000), Self.number(1 << 30)),
            Self.packet(.attributes, Self.number(1), Self.number(1), [0, 0]),
            Self.packet(.open, Self.number(1)), Self.packet(.status, [0, 0]),
        ]
        for packet in broken { #expect(throws: ProtocolFault.self, "\(packet.prefix(40))") { try Self.decode(packet) } }
    }

    @Test func decodesFragmentedPackets() throws {
        let packets = (0..<20).map { Self.packet(.data, Self.number($0), Self.text([UInt8](repeating: UInt8($0), count: $0 * 7))) }
        let stream = packets.flatMap { $0 }
        for size in 1...40 {
            var assembler = PacketAssembler()
            var seen: [ServerPacket] = []
            for start in stride(from: 0, to: stream.count, by: size) {
                assembler.append(Array(stream[start..<min(stream.count, start + size)]))
                while let packet = try assembler.next() { seen.append(try ServerPacket(packet)) }
            }
            #expect(seen == (0..<20).map { .response(id: UInt32($0), .data([UInt8](repeating: UInt8($0), count: $0 * 7))) })
        }
    }

    @Test(arguments: 0..<20) func decodesOrRejectsArbitraryBytes(seed: UInt64) throws {
        var generator = Generator(state: seed)
        let attributes = Self.number(0x8000_000F) + [UInt8](repeating: 1, count: 28) + Self.number(1) + Self.text([1]) + Self.text([2])
        let samples = [
            Self.packet(.version, Self.number(3), Self.text([0x61]), Self.text([0x62])),
            Self.packet(
                .name, Self.number(1), Self.number(2), Self.text([0x61]), Self.text([]), attributes, Self.text([0x62]), Self.text([]),
                attributes),
            Self.packet(.attributes, Self.number(1), attributes), Self.packet(.data, Self.number(1), Self.text([1, 2, 3])),
            Self.packet(.status, Self.number(1), Self.number(2), Self.text([0xFF]), Self.text([])),
        ]
        for _ in 0..<500 {
            var bytes = samples.randomElement(using: &generator) ?? []
            if Bool.random(using: &generator) { bytes = bytes.map { _ in UInt8.random(in: 0 ... .max, using: &generator) } }
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(in: 0 ... .max, using: &generator)
            }
            // Usually corrects the length, so the rest of the packet is decoded.
            if Int.random(in: 0..<4, using: &generator) > 0 { bytes.replaceSubrange(0..<4, with: Self.number(bytes.count - 4)) }
            _ = try? Self.decode(bytes)
            _ = try? ServerLimits(bytes)
            _ = try? FileSystemSpace(bytes)
        }
    }
}

struct UnexpectedPacket: Error {}
