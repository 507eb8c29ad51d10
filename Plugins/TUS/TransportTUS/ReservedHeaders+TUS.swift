import HTTPSupport

extension ReservedHeaders {
    /// Those of the tus transport, whichever dialect it speaks.
    static let tus = ReservedHeaders(of: .tus, names: ["content-type", "x-http-method-override"], prefixes: ["upload-", "tus-"])
}
