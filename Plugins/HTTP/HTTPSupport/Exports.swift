// Re-exports the types of header hooks, so that apps import only the transport.
@_exported public import CurlEngine
