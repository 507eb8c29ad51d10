import ArgumentParser

struct CheckOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Seconds to wait for each endpoint (default: 30).", valueName: "seconds"))
    var timeout: Double?

    func validate() throws {
        guard let timeout, !(timeout > 0 && timeout <= 86_400) else { return }
        throw ValidationError("--timeout must be more than 0 and at most 86400 seconds, not \(timeout).")
    }

    var limit: Duration { timeout.map { .seconds($0) } ?? .seconds(30) }
}
