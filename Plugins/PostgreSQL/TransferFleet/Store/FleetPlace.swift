/// The members on which a session of a fleet may run. The sources of uploads and the folders of downloads are paths on the member.
public enum FleetPlace: Hashable, Sendable, CustomStringConvertible {
    /// On any member, for example if the paths are in a shared folder.
    case anywhere
    /// On the member with this name only.
    case member(String)
    /// On the members with this label only.
    case label(String)

    /// The place as shown in messages.
    public var description: String {
        switch self {
        case .anywhere: "any member"
        case .member(let name): "the member \"\(name)\""
        case .label(let label): "members with the label \"\(label)\""
        }
    }

    /// The form in the column `place` of the database.
    var stored: String {
        switch self {
        case .anywhere: "anywhere"
        case .member(let name): "member \(name)"
        case .label(let label): "label \(label)"
        }
    }

    /// An SQL condition that is true if the place includes the member in the table `member`.
    ///
    /// - Parameter place: The SQL expression of the place's stored form.
    private static func containsMember(_ place: String) -> String {
        "(\(place) = 'anywhere' OR \(place) = 'member ' || member.name OR \(place) LIKE 'label %' AND substr(\(place), 7) = ANY(labels))"
    }

    /// An SQL condition that is true if a live member may run a session.
    ///
    /// - Parameters:
    ///   - session: The name of a table with the columns of `session`.
    ///   - other: An SQL expression for the name of a member that the condition ignores.
    static func liveMemberMayRun(_ session: String, otherThan other: String = "NULL") -> String {
        """
        EXISTS (SELECT FROM member WHERE live_until > clock_timestamp() AND member.name IS DISTINCT FROM \(other)
            AND \(memberMayRun(session)))
        """
    }

    /// An SQL condition that is true if the member in the table `member` may run a session: the place includes the member, and the member
    /// has refused neither the account nor the session.
    static func memberMayRun(_ session: String) -> String {
        """
        \(containsMember("\(session).place"))
            AND NOT EXISTS (SELECT FROM refusal WHERE refusal.account = \(session).account AND refusal.member = member.name)
            AND NOT EXISTS (SELECT FROM session_refusal
                WHERE session_refusal.session = \(session).id AND session_refusal.member = member.name)
        """
    }

    init(stored: String) {
        if stored.hasPrefix("member ") {
            self = .member(String(stored.dropFirst(7)))
        } else if stored.hasPrefix("label ") {
            self = .label(String(stored.dropFirst(6)))
        } else {
            self = .anywhere
        }
    }
}
