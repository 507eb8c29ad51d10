"""Runs an OpenSSH server for one user on a free loopback port. Prints the port when the server listens, and exits when its standard input ends.

Usage: sshd.py FOLDER. FOLDER contains the configuration and keys of the server, and the files "key" and "known_hosts" for clients.
"""

import ctypes
import getpass
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

libc = ctypes.CDLL(None)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


folder = pathlib.Path(sys.argv[1]).resolve()
folder.mkdir(mode=0o700, parents=True, exist_ok=True)
for name in ["key", "host_key"]:
    if not (folder / name).exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
(folder / "authorized_keys").write_text((folder / "key.pub").read_text())
if os.getuid() == 0:
    # sshd requires this folder, which Debian creates when the service starts.
    pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
port = free_port()
host_key = " ".join((folder / "host_key.pub").read_text().split()[:2])
(folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}\n")
(folder / "sshd_config").write_text(f"""
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
MaxStartups 100
MaxSessions 100
AllowUsers {getpass.getuser()}
Subsystem sftp /usr/lib/openssh/sftp-server
""")
server = subprocess.Popen(
    ["/usr/sbin/sshd", "-D", "-f", folder / "sshd_config"], stderr=subprocess.DEVNULL,
    preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG
while server.poll() is None:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        break
    except OSError:
        time.sleep(0.01)
else:
    sys.exit("sshd did not start")
print(port, flush=True)
sys.stdin.read()
server.kill()
