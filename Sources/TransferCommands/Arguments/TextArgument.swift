import ArgumentParser

/// Rejects text arguments that are not UTF-8, because storing such an argument would change it.
enum TextArgument {
    @Sendable static func text(_ argument: String) throws -> String {
        guard ProcessArguments.isText(argument) else {
            throw ValidationError("The value is not UTF-8. Only paths may contain other bytes.")
        }
        return argument
    }
}
