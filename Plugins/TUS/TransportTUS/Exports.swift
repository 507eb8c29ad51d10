// Re-exports the request options, so that apps import only `TransportTUS`.
@_exported public import HTTPSupport
