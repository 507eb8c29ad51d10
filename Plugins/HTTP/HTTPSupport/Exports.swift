// Re-exports the types of header hooks, so that apps need not import `CurlEngine`.
@_exported public import CurlEngine
