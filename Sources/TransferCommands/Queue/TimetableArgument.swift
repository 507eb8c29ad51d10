import ArgumentParser
import TransferKit
import TransferOutput

/// Rate limits by the time of the week, such as `mon-fri 08:00-18:00 2M; * off`; `none` to remove them.
struct TimetableArgument: Sendable {
    /// The timetable; nil for `none`.
    let timetable: BandwidthTimetable?

    @Sendable static func parse(_ argument: String) throws -> TimetableArgument {
        guard argument != "none" else { return TimetableArgument(timetable: nil) }
        do {
            return TimetableArgument(timetable: try BandwidthTimetable(parsing: argument))
        } catch {
            throw ValidationError(error.message)
        }
    }
}
