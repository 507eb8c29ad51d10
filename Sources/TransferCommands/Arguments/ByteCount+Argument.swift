import ArgumentParser
import TransferOutput

extension ByteCount: ExpressibleByArgument {
    init?(argument: String) { self.init(argument) }
}
