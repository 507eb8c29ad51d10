import ArgumentParser

/// Rejects text arguments that are not UTF-8. The queue would store them as different words.
enum TextArgument {
    @Sendable static func text(_ argument: String) throws -> String {
        guard ProcessArguments.isText(argument) else { throw ValidationError("It is not UTF-8. Only paths may contain other bytes.") }
        return argument
    }
}
