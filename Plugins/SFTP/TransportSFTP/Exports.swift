// `SFTPOptions` uses `NetworkOptions` from HTTPSupport, so `import TransportSFTP` must make this type available to apps.
@_exported public import HTTPSupport
