import CCurl
import TransferCore

extension EasyHandle {
    func apply(_ options: ConnectionOptions, defaultConnectTimeout: Duration) throws(CurlEngineError) {
        let timeout = options.connectTimeout ?? defaultConnectTimeout
        set(CURLOPT_CONNECTTIMEOUT_MS, Int(min(max(timeout / .milliseconds(1), 1), Double(CInt.max))))
        set(CURLOPT_TCP_KEEPALIVE, 1)
        switch options.addressFamily {
        case .any: break
        case .ipv4: set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V4))
        case .ipv6: set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V6))
        }
        if let interface = options.libcurlInterface { try set(CURLOPT_INTERFACE, interface) }
        switch options.httpVersion {
        case .http1: set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        case .http2:
            set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
            // Makes a request wait for a connection that it can share, instead of opening another one.
            set(CURLOPT_PIPEWAIT, 1)
        }
        try applyTrust(options)
        try applyProxy(options.proxy)
    }

    private func applyTrust(_ options: ConnectionOptions) throws(CurlEngineError) {
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        set(CURLOPT_PROXY_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        if let file = options.certificateAuthorityFile {
            try set(CURLOPT_CAINFO, file)
            try set(CURLOPT_PROXY_CAINFO, file)
            unsafe ccurl_setopt_pointer(pointer, CURLOPT_CAPATH, nil)
            unsafe ccurl_setopt_pointer(pointer, CURLOPT_PROXY_CAPATH, nil)
        }
        if !options.verification.isRequired {
            set(CURLOPT_SSL_VERIFYPEER, 0)
            set(CURLOPT_SSL_VERIFYHOST, 0)
        }
        if !options.pinnedPublicKeys.isEmpty {
            try set(CURLOPT_PINNEDPUBLICKEY, options.pinnedPublicKeys.map { "sha256//" + $0 }.joined(separator: ";"))
        }
        if let certificate = options.clientCertificate {
            try set(CURLOPT_SSLCERT, certificate.certificateFile)
            try set(CURLOPT_SSLKEY, certificate.keyFile ?? certificate.certificateFile)
            // Always set. Otherwise, OpenSSL would prompt for a passphrase on the terminal and block all transfers.
            try set(CURLOPT_KEYPASSWD, certificate.passphrase?.reveal() ?? "")
        }
    }

    private func applyProxy(_ proxy: Proxy) throws(CurlEngineError) {
        // Keeps the proxy's headers out of the server's response.
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        switch proxy.choice {
        case .environment: break
        // An empty string also makes libcurl ignore the proxy environment variables (CURLOPT_PROXY(3)).
        case .direct: try set(CURLOPT_PROXY, "")
        case .url(let url), .variableValue(let url):
            try set(CURLOPT_PROXY, url)
            if let userName = proxy.userName {
                try set(CURLOPT_PROXYUSERNAME, userName)
                try set(CURLOPT_PROXYPASSWORD, proxy.password?.reveal() ?? "")
            }
            if let exceptions = proxy.exceptions { try set(CURLOPT_NOPROXY, exceptions.joined(separator: ",")) }
        }
    }
}
