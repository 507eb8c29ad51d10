package import CurlEngine
package import Foundation

extension HTTPResponse {
    /// The URL in `Location`, resolved against the URL of the request (RFC 9110, section 10.2.2); nil unless it is an `http` or `https` URL.
    package var location: URL? {
        guard let text = headers["Location"],
            let url = URL(string: text, relativeTo: URL(string: effectiveURL))?.absoluteURL, Origin(url) != nil
        else { return nil }
        return url
    }

    /// Returns the target of a redirect; nil if the response is not a redirect, or the client must not follow it. The client never follows a
    /// redirect from https to http.
    ///
    /// - Parameters:
    ///   - isGet: Whether the request was a `GET`. All redirects of a `GET` are followed; otherwise, only 307 and 308 (RFC 9110, section 15.4).
    ///   - origin: The origin of the request.
    ///   - others: Other trusted origins.
    package func redirection(ofGet isGet: Bool, from origin: Origin, or others: Set<Origin>) -> (url: String, origin: Origin)? {
        let isRedirect = isGet ? [301, 302, 303, 307, 308].contains(status) : [307, 308].contains(status)
        guard isRedirect, let url = location, let target = Origin(url), target == origin || others.contains(target),
            origin.scheme == "http" || target.scheme == "https"
        else { return nil }
        return (url.absoluteString, target)
    }

    /// Whether this is nginx's error page for clients without a valid certificate.
    package var refusesClientCertificate: Bool {
        status == 400 && String(decoding: body, as: UTF8.self).contains("SSL certificate")
    }

    /// Whether this is the error page of nginx, Apache or Go for a plain HTTP request on a TLS port.
    package var requiresTLS: Bool {
        let phrases = ["HTTP request was sent to HTTPS port", "speaking plain HTTP to an SSL-enabled", "HTTP request to an HTTPS server"]
        let text = String(decoding: body, as: UTF8.self)
        return status == 400 && phrases.contains { text.contains($0) }
    }

    /// Whether a broken connection may have caused the response. If a connection closes in one direction before the whole request has
    /// arrived, servers based on SwiftNIO, Node or HAProxy report that the request is malformed. Repeating the request on a new connection
    /// shows whether the request really is malformed.
    package var mayResultFromBrokenConnection: Bool { status == 400 && !refusesClientCertificate && !requiresTLS }

    /// Returns the server's explanation of a rejection: the first line of a plain-text or JSON body, or the text of an HTML or XML page, up to
    /// 200 Unicode scalars. Returns nil if there is no explanation, or if a secret in the response can't be replaced.
    package func explanation(excluding secrets: [String]) -> String? {
        let type = headers["Content-Type"]?.lowercased() ?? "text/plain"
        let isText = ["text/plain", "application/json", "application/problem+json"].contains { type.hasPrefix($0) }
        let isMarkup = ["text/html", "text/xml", "application/xml", "application/xhtml+xml"].contains { type.hasPrefix($0) }
        guard isText || isMarkup, let text = String(decoding: body, as: UTF8.self).redacted(secrets) else { return nil }
        let line =
            isMarkup
            ? text.withoutMarkup
            : text.split(whereSeparator: \.isNewline).first.map { $0.trimmingCharacters(in: .whitespaces) } ?? ""
        let shown = line.unicodeScalars.filter { $0.properties.generalCategory != .control }.prefix(200)
        let explanation = String(String.UnicodeScalarView(shown))
        return explanation.isEmpty || line.repeats(secrets) || explanation.repeats(secrets) ? nil : explanation
    }
}

extension String {
    /// The text between the tags of HTML or XML, on one line, without the page's head, scripts and style sheets.
    fileprivate var withoutMarkup: String {
        var words: [Substring] = []
        var hidden: Substring?
        for section in split(separator: "<") {
            let parts = section.split(separator: ">", maxSplits: 1, omittingEmptySubsequences: false)
            // A section without `>` is text before the first tag, or an incomplete tag. Only the text is kept.
            guard parts.count == 2 else {
                if words.isEmpty, hidden == nil, section.startIndex == startIndex { words += section.split(whereSeparator: \.isWhitespace) }
                continue
            }
            let tag = parts[0].prefix { !$0.isWhitespace }.lowercased()[...]
            if let end = hidden {
                if tag == "/" + end { hidden = nil } else { continue }
            } else if ["head", "script", "style"].contains(tag) {
                hidden = tag
                continue
            }
            words += parts[1].split(whereSeparator: \.isWhitespace)
        }
        let entities = ["&lt;": "<", "&gt;": ">", "&quot;": "\"", "&#39;": "'", "&#x27;": "'", "&nbsp;": " "]
        let text = entities.reduce(words.joined(separator: " ")) { $0.replacingOccurrences(of: $1.key, with: $1.value) }
        return text.replacingOccurrences(of: "&amp;", with: "&")
    }
}
