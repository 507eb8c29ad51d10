// Apps use the request options of this module, so `import TransportTUS` must be enough.
@_exported public import HTTPSupport
