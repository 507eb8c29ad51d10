import CurlEngine
import Testing
import TransportTUS

/// The values of ``Dialect`` that describe the versions of the IETF protocol *Resumable Uploads for HTTP*.
@Suite struct DialectTableTests {
    private func terms(_ version: String) throws -> IETFTerms {
        try #require(Dialect.ietfVersions.first { $0.version == version }?.ietf)
    }

    @Test func containsEachVersionOnce() {
        #expect(Dialect.ietfVersions.map(\.version) == ["10", "9", "8", "6", "5", "3", "final"])
        #expect(Set(Dialect.ietfVersions.compactMap(\.storedName)).count == 7)
        #expect(Dialect.ietfVersions.allSatisfy { ($0.versionHeader == nil) == ($0.version == "final") })
        #expect(Dialect.tus.storedName == nil && Dialect(storedName: nil)?.version == "1.0.0")
        #expect(Dialect(storedName: "ietf-8")?.version == "8")
        #expect(Dialect(storedName: "ietf-7") == nil)
    }

    @Test(arguments: ["3", "5", "6", "8", "9", "10", "final"]) func declaresCompleteness(version: String) throws {
        let terms = try terms(version)
        let isOld = version == "3"
        #expect(terms.completenessHeader == (isOld ? "Upload-Incomplete" : "Upload-Complete"))
        #expect(terms.completeness(true) == (isOld ? "?0" : "?1"))
        #expect(terms.completeness(false) == (isOld ? "?1" : "?0"))
        #expect(terms.isComplete(in: [terms.completenessHeader: terms.completeness(true)]) == true)
        #expect(terms.isComplete(in: [terms.completenessHeader: terms.completeness(false) + ";a=1"]) == false)
        for invalid in ["1", "true", "?2", "", "?1, ?0"] { #expect(terms.isComplete(in: [terms.completenessHeader: invalid]) == nil) }
        // swift-nio-extras swaps the headers of versions 3, 5 and 6 in final responses.
        let other = isOld ? "Upload-Complete" : "Upload-Incomplete"
        let isSwapped = ["3", "5", "6"].contains(version)
        #expect(terms.isComplete(in: [other: isOld ? "?1" : "?0"]) == (isSwapped ? true : nil))
        #expect(terms.declaresCompletion == !isSwapped)
        #expect(terms.conflictHasOffset == ["9", "10", "final"].contains(version))
    }

    @Test func findsVersionThatServerNames() {
        let named = ["6": "6", "7": "6", "4": "3", "11": "10", "8;a=b": "8"]
        for (text, version) in named { #expect(Dialect.draft(namedIn: ["Upload-Draft-Interop-Version": text])?.version == version) }
        for text in ["2", "six", "\"6\"", "6.0", ""] { #expect(Dialect.draft(namedIn: ["Upload-Draft-Interop-Version": text]) == nil) }
        #expect(Dialect.draft(namedIn: [:]) == nil)
    }

    @Test func parsesLimits() throws {
        let text = "max-size=10, min-size=1 , max-append-size=5;a;b=\"c\", min-append-size=2,max-age=60"
        let limits = try #require(try terms("8").limits(in: ["Upload-Limit": text]))
        #expect(
            [limits.maximumSize, limits.minimumSize, limits.maximumAppendSize, limits.minimumAppendSize, limits.maximumAge] == [
                10, 1, 5, 2, 60,
            ])
        #expect(try terms("6").limits(in: ["Upload-Limit": "expires=7,max-age=8"])?.maximumAge == 7)
        #expect(try terms("5").limits(in: ["Upload-Limit": text]) == nil)
    }

    /// Unknown keys may have values of any type.
    @Test(arguments: [
        "a", "a=?0", "a=tok/en", "a=\"x\\\"y\"", "a=:AAA=:", "a=@1700000000", "a=1.5", "a=-3", "a=(1 \"b\" c);d", "a=%\"f%c3%bc\"", "*a=1",
        "max-size=9",
    ])
    func ignoresUnknownLimits(member: String) {
        let limits = UploadLimits("\(member), max-size=10", ageKey: "max-age")
        #expect(limits?.maximumSize == 10, "the last value applies")
    }

    /// A known limit with a value of the wrong type invalidates all limits. So does a text that is not a dictionary.
    @Test(arguments: [
        "max-size=\"10\"", "max-size", "max-size=1.0", "max-size=-1", "max-size=(1)", "max-size=1000000000000000", "max-size=",
        "max-size=1,",
        "Max-Size=1", "=1", "max-size 1", "max-size=1;", "a=\"", "a=:", "a=(1", "a=?", "a=@", "a=$", "max-size=1 b=2",
    ])
    func rejectsInvalidLimits(text: String) {
        #expect(UploadLimits("min-size=1, " + text, ageKey: "max-age") == nil)
    }

    @Test func newLimitsReplaceOldOnes() {
        var limits = UploadLimits()
        limits.update(with: UploadLimits("max-size=10, min-size=2", ageKey: "max-age"))
        limits.update(with: nil)
        limits.update(with: UploadLimits("max-size=20", ageKey: "max-age"))
        #expect(limits.maximumSize == 20 && limits.minimumSize == 2 && limits.maximumAppendSize == nil)
    }
}
