import ArgumentParser

/// How endpoints are asked.
struct CheckOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("How long each endpoint may take to answer, in seconds; otherwise 30.", valueName: "seconds"))
    var timeout: Double?

    func validate() throws {
        guard let timeout, !(timeout > 0 && timeout <= 86_400) else { return }
        throw ValidationError("--timeout takes a number of seconds above 0, a day at most, and not \(timeout).")
    }

    var limit: Duration { timeout.map { .seconds($0) } ?? .seconds(30) }
}
