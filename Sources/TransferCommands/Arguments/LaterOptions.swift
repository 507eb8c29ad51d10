import ArgumentParser

/// Options that are agreed on but that this version can't honour: refused, as one that is ignored would break a promise.
enum LaterOptions {
    static func refuse(_ options: [(name: String, isGiven: Bool)]) throws {
        for option in options where option.isGiven {
            throw ValidationError("This version can't do \(option.name).")
        }
    }
}
