package import TransferCore

/// The settings of a transport. Converts between the transport's options and the stored settings of an account or a session.
package struct SettingTable<Options: Sendable>: Sendable {
    private let transport: TransportID
    private let standard: Options
    private let settings: [Setting<Options>]

    /// - Parameters:
    ///   - transport: The transport, for errors.
    ///   - standard: The options with default values.
    ///   - settings: The settings, in any order.
    package init(of transport: TransportID, _ standard: Options, _ settings: [Setting<Options>]) {
        self.transport = transport
        self.standard = standard
        self.settings = settings.sorted { $0.name < $1.name }
    }

    /// The documentation of the settings, sorted by name.
    package var descriptions: [SettingDescription] {
        settings.map {
            SettingDescription(
                $0.name, values: $0.values, standard: $0.standard(standard), isForEndpoints: $0.isForEndpoints,
                isForSessions: $0.isForSessions)
        }
    }

    /// Reads the settings of an endpoint and of a session. The session's settings take precedence.
    ///
    /// - Throws: A ``TransferError`` for the first invalid setting. Reads the endpoint's settings first, then the session's, in alphabetical order.
    ///   For an unknown name, the error suggests the nearest names or lists the valid ones.
    package func read(_ endpoint: [String: String], session: [String: String] = [:]) throws(TransferError) -> Options {
        var options = standard
        for (name, text) in endpoint.sorted(by: { $0.key < $1.key }) {
            guard let setting = settings.first(where: { $0.includes(name) }) else { throw unknown(name, inSession: false) }
            guard setting.isForEndpoints else {
                throw .invalidEndpoint("The setting \(name) is only for sessions; remove it from the endpoint.")
            }
            try setting.read(name, text, &options)
        }
        for (name, text) in session.sorted(by: { $0.key < $1.key }) {
            guard let setting = settings.first(where: { $0.includes(name) }) else { throw unknown(name, inSession: true) }
            guard setting.isForSessions else { throw notForSessions(name) }
            try setting.read(name, text, &options)
        }
        return options
    }

    /// Returns the settings whose values in the options differ from the defaults.
    package func write(_ options: Options) -> [String: String] {
        settings.reduce(into: [:]) { texts, setting in
            let defaults = setting.write(standard)
            texts.merge(setting.write(options).filter { defaults[$0.key] != $0.value }) { $1 }
        }
    }

    private func unknown(_ name: String, inSession: Bool) -> TransferError {
        let names = settings.filter { inSession ? $0.isForSessions : $0.isForEndpoints }.map(\.name)
        // In a family of settings, the user chooses the text after the dot, so only the text before the dot is compared.
        func head(_ name: String) -> String { String(name.prefix { $0 != "." }) }
        let heads = names.map(head).nearest(to: head(name))
        let nearest = names.filter { heads.contains(head($0)) }
        guard nearest.isEmpty else {
            return .invalidEndpoint(
                "The setting \(name.debugDescription) is unknown to the \(transport) transport. Did you mean "
                    + "\(nearest.joined(separator: " or "))?")
        }
        guard !inSession else { return notForSessions(name) }
        return .invalidEndpoint(
            "The setting \(name.debugDescription) is unknown to the \(transport) transport; valid settings are "
                + "\(names.joined(separator: ", ")).")
    }

    private func notForSessions(_ name: String) -> TransferError {
        .invalidEndpoint(
            "The setting \(name.debugDescription) can't be set for a session; the \(transport) transport's settings for sessions are "
                + "\(settings.filter(\.isForSessions).map(\.name).joined(separator: ", ")).")
    }
}

/// One setting of a transport: its documentation, and the conversion between its text and the transport's options.
package struct Setting<Options: Sendable>: Sendable {
    /// The name. For a family of settings, whose names have a common prefix, the prefix and `NAME`, such as `header.NAME`.
    package let name: String
    /// The valid values, in Markdown.
    let values: String
    private(set) var isForEndpoints = true
    private(set) var isForSessions = false
    /// The default, in Markdown.
    let standard: @Sendable (Options) -> String
    /// Sets an option from the text of a setting with this name.
    let read: @Sendable (_ name: String, _ text: String, inout Options) throws(TransferError) -> Void
    /// Returns the names and texts of this setting for the given options, including defaults.
    let write: @Sendable (Options) -> [String: String]
    /// The common prefix of the names of a family, with the dot; nil for a single setting.
    private let prefix: String?

    private init(
        _ name: String, prefix: String? = nil, _ values: String, standard: @escaping @Sendable (Options) -> String,
        read: @escaping @Sendable (String, String, inout Options) throws(TransferError) -> Void,
        write: @escaping @Sendable (Options) -> [String: String]
    ) {
        self.name = name
        self.prefix = prefix
        self.values = values
        self.standard = standard
        self.read = read
        self.write = write
    }

    /// A setting for an option that always has a value.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - path: The option.
    ///   - format: The format of its text.
    ///   - values: The valid values, in Markdown.
    ///   - standard: The documented default if the default value is empty, in Markdown.
    package init<Value>(
        _ name: String, _ path: any WritableKeyPath<Options, Value> & Sendable, _ format: SettingFormat<Value>, _ values: String,
        empty standard: String = "none"
    ) {
        self.init(
            name, values, standard: { Self.markdown($0[keyPath: path], format) ?? standard },
            read: { (name, text, options) throws(TransferError) in options[keyPath: path] = try format.value(of: name, text) },
            write: { [name: format.text($0[keyPath: path])] })
    }

    /// A setting for an option that can be nil.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - path: The option.
    ///   - format: The format of its text.
    ///   - values: The valid values, in Markdown.
    ///   - standard: The documented default: the meaning of nil, in Markdown.
    package init<Value>(
        _ name: String, _ path: any WritableKeyPath<Options, Value?> & Sendable, _ format: SettingFormat<Value>, _ values: String,
        nil standard: String = "none"
    ) {
        self.init(
            name, values, standard: { _ in standard },
            read: { (name, text, options) throws(TransferError) in options[keyPath: path] = try format.value(of: name, text) },
            write: { options in options[keyPath: path].map { [name: format.text($0)] } ?? [:] })
    }

    /// A family of settings, such as `header.NAME`, for one option with a dictionary. The text after the dot is the key.
    ///
    /// - Parameters:
    ///   - prefix: The common prefix of the names, without the dot.
    ///   - path: The option.
    ///   - format: The format of a value.
    ///   - values: The valid values, in Markdown.
    ///   - check: Checks a name without the prefix, and the text of its value. Throws a ``TransferError`` if they are invalid.
    package init<Value>(
        family prefix: String, _ path: any WritableKeyPath<Options, [String: Value]> & Sendable, _ format: SettingFormat<Value>,
        _ values: String, check: @escaping @Sendable (String, String) throws(TransferError) -> Void = { (_, _) throws(TransferError) in }
    ) {
        self.init(
            "\(prefix).NAME", prefix: "\(prefix).", values, standard: { _ in "none" },
            read: { (name, text, options) throws(TransferError) in
                let key = String(name.dropFirst(prefix.count + 1))
                try check(key, text)
                options[keyPath: path][key] = try format.value(of: name, text)
            },
            write: { options in
                options[keyPath: path].reduce(into: [:]) { $0["\(prefix).\($1.key)"] = format.text($1.value) }
            })
    }

    /// Returns this setting for a type of options that contains these options at `path`.
    package func within<Outer>(_ path: any WritableKeyPath<Outer, Options> & Sendable) -> Setting<Outer> {
        var setting = Setting<Outer>(
            name, prefix: prefix, values, standard: { [standard] in standard($0[keyPath: path]) },
            read: { [read] (name, text, options) throws(TransferError) in try read(name, text, &options[keyPath: path]) },
            write: { [write] in write($0[keyPath: path]) })
        setting.isForEndpoints = isForEndpoints
        setting.isForSessions = isForSessions
        return setting
    }

    /// Returns a copy of this setting that sessions can have as well.
    ///
    /// - Parameter only: Whether the setting is only for sessions, not for endpoints.
    package func forSessions(only: Bool = false) -> Self {
        var setting = self
        setting.isForSessions = true
        setting.isForEndpoints = !only
        return setting
    }

    /// Returns whether a name is the name of this setting, or of a member of this family of settings.
    package func includes(_ name: String) -> Bool {
        guard let prefix else { return name == self.name }
        return name.hasPrefix(prefix) && name.utf8.count > prefix.utf8.count
    }

    private static func markdown<Value>(_ value: Value, _ format: SettingFormat<Value>) -> String? {
        let text = format.text(value)
        guard let bytes = value as? Int64, bytes > 1, bytes % (1 << 20) == 0 else { return text.isEmpty ? nil : "`\(text)`" }
        return "`\(text)` (\(bytes >> 20) MiB)"
    }
}
