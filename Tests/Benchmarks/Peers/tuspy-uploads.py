"""Uploads files one after another with tuspy, as in the example of tuspy's documentation. Usage: tuspy-uploads.py URL FILE-OR-FOLDER"""

import os
import sys

from tusclient.client import TusClient

url, path = sys.argv[1:]
names = sorted(os.path.join(path, name) for name in os.listdir(path)) if os.path.isdir(path) else [path]
client = TusClient(url)
for name in names:
    client.uploader(name).upload()
