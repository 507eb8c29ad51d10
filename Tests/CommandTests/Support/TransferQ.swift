import Foundation
import SystemPackage
import Testing

/// The built `transferq` program with its own storage folder.
struct TransferQ: Sendable {
    let folder: TemporaryFolder
    var store: FilePath
    var environment: [String: String] = [:]

    init() throws {
        folder = try TemporaryFolder()
        store = folder.path.appending("store")
    }

    /// The path of the program, which is in the same build folder as the tests.
    static let executable = FilePath(
        URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent().path
    ).appending("transferq")

    func run(_ arguments: String..., input: [UInt8] = []) async throws -> CommandResult {
        try await run(arguments, input: input)
    }

    /// Runs a command, waits until it exits, and checks that its JSON output conforms to the schema.
    func run(_ arguments: [String], input: [UInt8] = []) async throws -> CommandResult {
        let result = try await start(arguments, input: input).result()
        if arguments.contains("--json") || arguments.contains("json"), let command = Self.command(in: arguments) {
            for line in result.lines {
                let problems = try Self.schema.problems(of: line, from: command)
                #expect(problems == [], "\(arguments): \(line)")
            }
        }
        return result
    }

    static let schema = JSONSchema("Sources/Schemas/transferq.schema.json")

    /// Returns the name of the command that the arguments contain, for example `account add`.
    static func command(in arguments: [String]) -> String? {
        let pairs = zip(arguments, arguments.dropFirst()).map { "\($0) \($1)" } + [""]
        return zip(arguments, pairs).lazy.map { schema.commands[$1] == nil ? $0 : $1 }.first { schema.commands[$0] != nil }
    }

    @discardableResult
    func succeed(_ arguments: String..., input: [UInt8] = []) async throws -> CommandResult {
        try await succeed(arguments, input: input)
    }

    @discardableResult
    func succeed(_ arguments: [String], input: [UInt8] = []) async throws -> CommandResult {
        let result = try await run(arguments, input: input)
        try #require(result.status == 0, "\(arguments): \(result.testDescription)")
        return result
    }

    func start(
        _ arguments: [String], input: [UInt8] = [], output: FileDescriptor? = nil, diagnostics: FileDescriptor? = nil
    ) throws -> RunningCommand {
        try start(Self.executable, arguments.map { Array($0.utf8) }, input: input, output: output, diagnostics: diagnostics)
    }

    /// Starts any program with the storage folder in its environment.
    func start(
        _ program: FilePath, _ arguments: [[UInt8]], input: [UInt8] = [], output: FileDescriptor? = nil,
        diagnostics: FileDescriptor? = nil, workingFolder: FilePath? = nil
    ) throws -> RunningCommand {
        // The variable is always set, so that no test can touch the queue of the user who runs the tests.
        var variables = ProcessInfo.processInfo.environment
        variables["TRANSFERQ_STORE"] = store.string
        variables.merge(environment) { $1 }
        return try RunningCommand(
            program, arguments, environment: variables, input: input, output: output, diagnostics: diagnostics, scratch: folder,
            workingFolder: workingFolder)
    }
}
