import ArgumentParser
import TransferCore
import TransferKit

/// How new sessions are run.
struct TransferOptions: ParsableArguments {
    @Option(help: ArgumentHelp("A name and a value to tell the server with each file; can be repeated.", valueName: "name=value"))
    var metadata: [String] = []

    @Option(help: ArgumentHelp("Bytes per second for the session, with K, M or G for the binary units; 0 for no limit.", valueName: "rate"))
    var rate: ByteCount?

    @Option(
        help: "What is compared at the end: \(Self.verifications).",
        completion: .list(Verification.allCases.map(\.rawValue)), transform: Self.verification)
    var verify: Verification?

    @Option(
        help: ArgumentHelp(
            "How many files may be in flight at once, 1 to 64; otherwise six small ones or one large one.", valueName: "number"))
    var parallel: Int?

    func validate() throws {
        if let parallel, !(1...64).contains(parallel) { throw ValidationError("--parallel takes a number from 1 to 64.") }
        _ = try metadataValues()
    }

    func options() throws -> SessionOptions {
        SessionOptions(
            metadata: try metadataValues(), rateLimit: rate?.limit, filesInFlight: parallel,
            verification: verify ?? SessionOptions().verification)
    }

    private static let verifications = Verification.allCases.map(\.rawValue).joined(separator: ", ")

    private static func verification(_ text: String) throws -> Verification {
        guard let verification = Verification(rawValue: text) else { throw ValidationError("--verify takes one of \(verifications).") }
        return verification
    }

    private func metadataValues() throws -> [String: String] {
        var values: [String: String] = [:]
        for text in metadata {
            guard ProcessArguments.isText(text), let equals = text.firstIndex(of: "="), equals != text.startIndex else {
                throw ValidationError("--metadata takes NAME=VALUE.")
            }
            let name = String(text[..<equals])
            guard values.updateValue(String(text[text.index(after: equals)...]), forKey: name) == nil else {
                throw ValidationError("--metadata names \"\(name)\" twice.")
            }
        }
        return values
    }
}

/// What this version can't do for sessions.
struct LaterAddOptions: ParsableArguments {
    @Flag var download = false
    @Option var overwrite: String?
    @Option var chunk: String?

    func validate() throws {
        try LaterOptions.refuse([("--download", download), ("--overwrite", overwrite != nil), ("--chunk", chunk != nil)])
    }
}
