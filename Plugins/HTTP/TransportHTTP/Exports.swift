// Re-exports the request options, so that apps need not import `HTTPSupport`.
@_exported public import HTTPSupport
