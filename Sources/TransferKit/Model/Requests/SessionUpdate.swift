public import Foundation
public import TransferCore

/// Changes to a session that has not completed. A value of nil leaves the property unchanged.
///
/// Changes take effect within a second, except changes of properties that apply only to later attempts or files; see their descriptions.
///
/// ```swift
/// try await queue.update(id, SessionUpdate(account: "archive", notBefore: .set(tonight), overwrite: .always))
/// ```
///
/// Some changes are valid only in some states. In any other state, an update with such a change throws ``QueueError/Code/invalidTransition``, and
/// changes nothing:
///
/// - ``account``, ``metadata``, ``creation``, ``overwrite``, ``settings``, ``creationURL`` and ``expectedChecksum`` determine where and how files
///   arrive. They can change while the session is a draft, waiting or held, until its first bytes are transferred.
/// - ``notBefore`` and ``dependency`` determine the start. They can change while the session is a draft, waiting or held.
/// - All other properties can change until the session completes. Changes of a failed or cancelled session apply to its retry.
public struct SessionUpdate: Hashable, Sendable, Codable {
    /// A new rate limit of a whole session.
    public enum RateLimit: Hashable, Sendable, Codable {
        /// No limit for the session itself. The limits of its account and of the queue still apply.
        case unlimited
        /// Bytes per second, at least 1.
        case bytesPerSecond(Int64)
    }

    /// A new value of a property that can be nil.
    public enum Change<Value: Hashable & Sendable & Codable>: Hashable, Sendable, Codable {
        /// The new value.
        case set(Value)
        /// No value.
        case remove

        /// The new value; nil for no value.
        public var value: Value? {
            switch self {
            case .set(let value): value
            case .remove: nil
            }
        }
    }

    /// The rate limit of the whole session.
    public var rateLimit: RateLimit?
    /// The new tags.
    public var tags: [String]?
    /// The app's new context value, as JSON.
    public var context: Change<Data>?
    /// The new retry policy.
    public var retry: RetryPolicy?
    /// The new verification, for attempts that begin later.
    public var verification: Verification?
    /// Whether the session may run while the network is expensive. If false, and the network is expensive, a running session is interrupted.
    public var allowsExpensiveNetwork: Bool?
    /// Whether events report the start and the progress of each item; see ``SessionOptions/reportsItemProgress``.
    public var reportsItemProgress: Bool?

    /// The name of another account. The account must have endpoints that can perform the session, as for a new session.
    public var account: String?
    /// The new human-readable name.
    public var name: String?
    /// The earliest start time. A time in the past has the same effect as no time.
    public var notBefore: Change<Date>?
    /// The dependency on another session. A dependency that is already satisfied has no effect.
    public var dependency: Change<SessionDependency>?

    /// See ``SessionOptions/metadata``. Replaces all names and values.
    public var metadata: [String: String]?
    /// See ``SessionOptions/onItemFailure``.
    public var onItemFailure: SessionOptions.ItemFailurePolicy?
    /// See ``SessionOptions/stallTimeout``. Applies to attempts that begin later.
    public var stallTimeout: Duration?
    /// See ``SessionOptions/responseTimeout``. Applies to attempts that begin later.
    public var responseTimeout: Duration?
    /// See ``SessionOptions/deadline``. Applies immediately, even to a running session. The time still begins with the session's first start.
    public var deadline: Change<Duration>?
    /// See ``SessionOptions/onSourceChange``.
    public var onSourceChange: SessionOptions.SourceChangePolicy?
    /// See ``SessionOptions/filesInFlight``.
    public var filesInFlight: Change<Int>?
    /// See ``SessionOptions/creation``.
    public var creation: CreationMode?
    /// See ``SessionOptions/headers``. Replaces all headers. Applies to attempts that begin later.
    public var headers: [String: String]?
    /// See ``SessionOptions/chunkSize``. Applies to attempts that begin later.
    public var chunkSize: Change<Int64>?
    /// See ``SessionOptions/segmentsPerFile``. Applies to files that begin later.
    public var segmentsPerFile: Int?
    /// See ``SessionOptions/overwrite``.
    public var overwrite: OverwritePolicy?
    /// See ``SessionOptions/expectedChecksum``.
    public var expectedChecksum: Change<String>?

    /// See ``SessionOptions/settings``. Replaces all settings of the session. Printed updates contain only the names.
    public var settings: [String: String]? {
        get { ownSettings?.values }
        set { ownSettings = newValue.map(NamedCapabilities.init) }
    }

    /// The value of ``settings``. The name of this property is a key in the control protocol, so it must not change.
    private var ownSettings: NamedCapabilities?

    /// See ``SessionOptions/creationURL``. The endpoints of the account must be able to use the URL, as for a new session. Printed updates
    /// do not contain the URL.
    public var creationURL: Change<String>? {
        get {
            switch creationPlace {
            case .set(let capability): .set(capability.text)
            case .remove: .remove
            case nil: nil
            }
        }
        set {
            creationPlace =
                switch newValue {
                case .set(let url): .set(Capability(url))
                case .remove: .remove
                case nil: nil
                }
        }
    }

    /// The value of ``creationURL``. The name of this property is a key in the control protocol, so it must not change.
    private var creationPlace: Change<Capability>?

    /// Creates an update.
    public init(
        rateLimit: RateLimit? = nil, tags: [String]? = nil, context: Change<Data>? = nil, retry: RetryPolicy? = nil,
        verification: Verification? = nil,
        allowsExpensiveNetwork: Bool? = nil, account: String? = nil, name: String? = nil, notBefore: Change<Date>? = nil,
        dependency: Change<SessionDependency>? = nil, metadata: [String: String]? = nil, overwrite: OverwritePolicy? = nil,
        settings: [String: String]? = nil, creationURL: Change<String>? = nil
    ) {
        self.rateLimit = rateLimit
        self.tags = tags
        self.context = context
        self.retry = retry
        self.verification = verification
        self.allowsExpensiveNetwork = allowsExpensiveNetwork
        self.account = account
        self.name = name
        self.notBefore = notBefore
        self.dependency = dependency
        self.metadata = metadata
        self.overwrite = overwrite
        self.settings = settings
        self.creationURL = creationURL
    }

    /// Checks the values that do not depend on the session.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest`.
    package func validate() throws(QueueError) {
        if case .bytesPerSecond(let limit) = rateLimit, limit < 1 {
            throw QueueError(.invalidRequest, "A rate limit must be at least 1 byte per second. Use .unlimited to remove it.")
        }
        try SessionContext.validate(context?.value)
        try SessionRequest.validate(notBefore: notBefore?.value)
        // The default options are valid, so an error concerns a changed option.
        var options = SessionOptions()
        apply(to: &options)
        try options.validate()
    }

    /// Changes the options for which the update has a value.
    package func apply(to options: inout SessionOptions) {
        switch rateLimit {
        case .bytesPerSecond(let limit): options.rateLimit = limit
        case .unlimited: options.rateLimit = nil
        case nil: break
        }
        if let retry { options.retry = retry }
        if let verification { options.verification = verification }
        if let allowsExpensiveNetwork { options.allowsExpensiveNetwork = allowsExpensiveNetwork }
        if let reportsItemProgress { options.reportsItemProgress = reportsItemProgress }
        if let metadata { options.metadata = metadata }
        if let onItemFailure { options.onItemFailure = onItemFailure }
        if let stallTimeout { options.stallTimeout = stallTimeout }
        if let responseTimeout { options.responseTimeout = responseTimeout }
        if let deadline { options.deadline = deadline.value }
        if let onSourceChange { options.onSourceChange = onSourceChange }
        if let filesInFlight { options.filesInFlight = filesInFlight.value }
        if let creation { options.creation = creation }
        if let headers { options.headers = headers }
        if let chunkSize { options.chunkSize = chunkSize.value }
        if let segmentsPerFile { options.segmentsPerFile = segmentsPerFile }
        if let overwrite { options.overwrite = overwrite }
        if let settings { options.settings = settings }
        if let creationPlace { options.creationURL = creationPlace.value?.text }
        if let expectedChecksum { options.expectedChecksum = expectedChecksum.value }
    }

    /// The name, for messages, of the first changed property that must not change after the session has transferred content; nil if there is no
    /// such property.
    package var fixedProperty: String? {
        if account != nil { return "account" }
        if metadata != nil { return "metadata" }
        if creation != nil { return "creation mode" }
        if overwrite != nil { return "overwrite policy" }
        if ownSettings != nil { return "settings" }
        if creationPlace != nil { return "creation URL" }
        return expectedChecksum == nil ? nil : "expected checksum"
    }

    /// The name, for messages, of the first changed property that determines when the session starts; nil if there is no such property.
    package var startProperty: String? {
        if notBefore != nil { return "start time" }
        return dependency == nil ? nil : "dependency"
    }

    /// Whether the account's transports must check the session again.
    package var changesRequirements: Bool {
        fixedProperty != nil || verification != nil || headers != nil || chunkSize != nil || segmentsPerFile != nil
    }
}
