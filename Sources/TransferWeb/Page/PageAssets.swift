/// The static files of the web interface, which contain no data from the queue.
enum PageAssets {
    private static let script = String(decoding: PackageResources.page_js, as: UTF8.self)
    private static let style = String(decoding: PackageResources.page_css, as: UTF8.self)
    private static let icon = String(decoding: PackageResources.icon_svg, as: UTF8.self)
    static let openAPI = String(decoding: PackageResources.openapi_json, as: UTF8.self)

    /// The response to a request for a file; nil for other requests.
    static func response(to request: WebRequest) throws(Problem) -> WebResponse? {
        let (mediaType, text): (String, String)
        switch request.path {
        case "/page.js": (mediaType, text) = ("text/javascript; charset=utf-8", script)
        case "/page.css": (mediaType, text) = ("text/css; charset=utf-8", style)
        case "/icon.svg": (mediaType, text) = ("image/svg+xml", icon)
        default: return nil
        }
        guard request.method == "GET" || request.method == "HEAD" else { throw .methodNotAllowed(["GET", "HEAD"]) }
        return WebResponse(200, mediaType, text)
    }
}
