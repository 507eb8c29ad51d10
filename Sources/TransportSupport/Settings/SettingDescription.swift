/// The documentation of one setting of a transport.
public struct SettingDescription: Hashable, Sendable {
    /// The name. For a family of settings, whose names have a common prefix, the prefix and `NAME`, such as `header.NAME`.
    public var name: String

    /// The valid values, in Markdown.
    public var values: String

    /// The default, in Markdown.
    public var standard: String

    /// Whether an endpoint can have the setting.
    public var isForEndpoints: Bool

    /// Whether a session can have the setting. The session's value takes precedence over the endpoint's.
    public var isForSessions: Bool

    init(_ name: String, values: String, standard: String = "none", isForEndpoints: Bool = true, isForSessions: Bool = false) {
        self.name = name
        self.values = values
        self.standard = standard
        self.isForEndpoints = isForEndpoints
        self.isForSessions = isForSessions
    }
}
