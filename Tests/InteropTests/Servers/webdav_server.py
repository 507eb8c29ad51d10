"""Runs a WebDAV server. Prints its port once it accepts connections.

Usage: webdav_server.py KIND FOLDER

KIND is apache (mod_dav), nginx (libnginx-mod-http-dav-ext) or wsgidav. The files are in FOLDER/files.
"""

import os
import pathlib
import pwd
import shutil
import sys

from nginx_process import serve
from server_process import run_until_listening
from test_process import end_with_tests

end_with_tests()

kind, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
files = folder / "files"
files.mkdir(parents=True, exist_ok=True)
modules = "/usr/lib/apache2/modules"


def apache():
    # Apache does not serve files as root. Change the user here, because if Apache changed its user, the signal that ends Apache together with this
    # program would be cancelled.
    if os.geteuid() == 0:
        user = pwd.getpwnam("www-data")
        for path in (folder, files):
            shutil.chown(path, user.pw_uid, user.pw_gid)
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    configuration = folder / "apache.conf"

    def start(port, pid):
        configuration.write_text(f"""
ServerRoot {folder}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {pid}
DefaultRuntimeDir {folder}
ErrorLog {folder}/error.log
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule dir_module {modules}/mod_dir.so
LoadModule dav_module {modules}/mod_dav.so
LoadModule dav_fs_module {modules}/mod_dav_fs.so
DavLockDB {folder}/locks
DocumentRoot {files}
<Directory {files}>
    Dav On
    Require all granted
</Directory>
""")
        # -X: one process, so that it ends with this program.
        return ["/usr/sbin/apache2", "-X", "-f", str(configuration)]

    run_until_listening(folder / "apache.pid", start)


def wsgidav():
    from cheroot.wsgi import Server
    from wsgidav.wsgidav_app import WsgiDAVApp

    application = WsgiDAVApp({
        "provider_mapping": {"/": str(files)}, "simple_dc": {"user_mapping": {"*": True}}, "verbose": 0, "logging": {"enable": False},
        "property_manager": None, "lock_storage": None})
    server = Server(("127.0.0.1", 0), application)
    server.prepare()
    print(server.bind_addr[1], flush=True)
    server.serve()


def nginx():
    serve(folder, lambda port: f"""
    access_log off;
    server {{
        listen 127.0.0.1:{port};
        root {files};
        client_max_body_size 0;
        location / {{
            dav_methods PUT MKCOL;
            dav_ext_methods PROPFIND OPTIONS;
        }}
    }}
""", main="load_module /usr/lib/nginx/modules/ngx_http_dav_ext_module.so;")


{"apache": apache, "nginx": nginx, "wsgidav": wsgidav}[kind]()
