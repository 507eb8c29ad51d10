import ArgumentParser

/// An argument that is kept as text. What is not UTF-8 would be kept, and shown, as another word.
enum TextArgument {
    @Sendable static func text(_ argument: String) throws -> String {
        guard ProcessArguments.isText(argument) else { throw ValidationError("It is not UTF-8, and only paths may be of any bytes.") }
        return argument
    }
}
