"""Runs Debian's nginx on a free port. nginx exits when this program exits."""

from server_process import run_until_listening


def serve(folder, http, main=""):
    """Prints the port once nginx accepts connections, and returns when nginx exits.

    http: A function that returns the content of the block "http" for a port.
    main: Directives outside of all blocks.
    """
    def start(port, pid):
        (folder / "nginx.conf").write_text(f"""
{main}
daemon off;
master_process off;
pid {pid};
error_log {folder}/error.log;
events {{}}
http {{
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{http(port)}
}}
""")
        return ["/usr/sbin/nginx", "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]

    run_until_listening(folder / "nginx.pid", start)
