"""Runs an HTTP proxy with CONNECT (RFC 9110, section 9.3.6). Prints its port once it accepts connections.

Usage: connect_proxy.py PORT

All connections go to the local port PORT, regardless of the requested host.
"""

import socket
import sys
import threading

from test_process import end_with_tests

end_with_tests()


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end in source, target:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(client):
    head = b""
    while b"\r\n\r\n" not in head:
        data = client.recv(4096)
        if not data:
            return
        head += data
    if not head.startswith(b"CONNECT "):
        client.sendall(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
        return
    server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
    threading.Thread(target=copy, args=(server, client), daemon=True).start()
    copy(client, server)


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
