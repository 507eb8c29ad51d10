import ArgumentParser

/// How endpoints are asked.
struct CheckOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("How long each endpoint may take to answer, in seconds; otherwise 30.", valueName: "seconds"))
    var timeout: Double?

    func validate() throws {
        if let timeout, !(timeout > 0 && timeout <= 86_400) { throw ValidationError("--timeout takes a number of seconds above 0.") }
    }

    var limit: Duration { timeout.map { .seconds($0) } ?? .seconds(30) }
}
