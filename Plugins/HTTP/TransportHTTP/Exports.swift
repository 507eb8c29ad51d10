// Re-exports the request options, so that apps import only `TransportHTTP`.
@_exported public import HTTPSupport
