// Apps use the request options of this module, so `import TransportHTTP` must be enough.
@_exported public import HTTPSupport
