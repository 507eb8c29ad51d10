"""Makes a real Prometheus server read the metrics, and queries each expression of the Grafana dashboard.

Usage: scrape.py ORIGIN TOKEN_FILE DASHBOARD FOLDER
"""
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

origin, token_file, dashboard, folder = sys.argv[1:5]
folder = pathlib.Path(folder)
request = urllib.request.Request(origin + "/metrics", headers={"Authorization": "Bearer " + pathlib.Path(token_file).read_text().strip()})
with urllib.request.urlopen(request) as response:
    text = response.read()
check = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
if check.returncode or check.stderr or check.stdout:
    sys.exit(f"promtool: {check.stdout.decode()} {check.stderr.decode()}\n{text.decode()}")

with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
(folder / "prometheus.yml").write_text(f"""
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: transferq
    authorization: {{credentials_file: {token_file}}}
    static_configs: [{{targets: ["{origin.split('//')[1]}"]}}]
""")
prometheus = subprocess.Popen(
    ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"],
    stdout=subprocess.DEVNULL, stderr=open(folder / "prometheus.log", "w"))


def query(expression):
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(url) as response:
        return json.load(response)["data"]["result"]


try:
    # An increase needs two samples. The limit only ends a test that can't succeed.
    end = time.monotonic() + 120
    while True:
        try:
            if float(query("count_over_time(transferq_up[1m])")[0]["value"][1]) >= 3:
                break
        except (OSError, IndexError):
            pass
        if time.monotonic() > end or prometheus.poll() is not None:
            sys.exit("Prometheus has no samples: " + (folder / "prometheus.log").read_text()[-3000:])
        time.sleep(0.2)
    expressions = [target["expr"] for panel in json.loads(pathlib.Path(dashboard).read_text())["panels"] for target in panel["targets"]]
    empty = [expression for expression in expressions if not query(expression)]
    if empty:
        sys.exit(f"Without a result: {empty}\n{text.decode()}")
    print(f"{len(expressions)} expressions have results")
finally:
    prometheus.terminate()
    prometheus.wait()
