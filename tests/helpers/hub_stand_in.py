"""A stand-in for a hub's endpoint on this machine: repositories, commits, downloads."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote

from helpers.http_servers import QuietServer

TOKEN = "hf_stand_in"
Repos = dict[tuple[str, str], dict[str, bytes]]
"""Files by name, by kind (models, datasets) and name of the repository."""
_API = re.compile(r"/api/(models|datasets)/([\w.-]+/[\w.-]+)(?:/(preupload|commit|revision)/\w+)?")
_TREE = re.compile(r"/api/(models|datasets)/([\w.-]+/[\w.-]+)/tree/[^/]+")
_FILE = re.compile(r"/(datasets/)?([\w.-]+/[\w.-]+)/resolve/[^/]+/(.+)")
COMMIT = "1" * 40


class _Hub(BaseHTTPRequestHandler):
    repos: Repos

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, {"error": "Invalid credentials"})
        elif self.path == "/api/repos/create":
            asked = json.loads(body)
            kind = asked.get("type", "model") + "s"
            name = f"{asked.get('organization') or 'me'}/{asked['name']}"
            self.repos.setdefault((kind, name), {})
            self._answer(200, {"url": f"http://{self.headers['Host']}/{name}"})
        elif self.path.startswith("/api/validate-yaml"):
            self._answer(200, {"errors": [], "warnings": []})
        elif (match := _API.match(self.path)) and match[3] == "preupload":
            files = json.loads(body)["files"]
            modes = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in files
            ]
            self._answer(200, {"files": modes})
        elif match and match[3] == "commit":
            files = self.repos[(match[1], match[2])]
            for line in body.decode().splitlines():
                one = json.loads(line)
                if one["key"] == "file":
                    files[one["value"]["path"]] = base64.b64decode(one["value"]["content"])
            url = f"http://{self.headers['Host']}/{match[2]}/commit/{COMMIT}"
            self._answer(200, {"commitUrl": url, "commitOid": COMMIT})
        else:
            self._answer(404, {"error": f"no {self.path}"})

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0])
        if match := _FILE.fullmatch(path):
            files = self.repos.get(((match[1] or "models/").strip("/"), match[2]), {})
            if match[3] not in files:
                self._answer(404, {"error": "Entry not found"}, {"X-Error-Code": "EntryNotFound"})
                return
            data = files[match[3]]
            about = {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": COMMIT}
            self._send(200, data, about)
        elif (match := _TREE.fullmatch(path)) and (match[1], match[2]) in self.repos:
            files = self.repos[(match[1], match[2])]
            self._answer(
                200,
                [
                    {"type": "file", "path": name, "size": len(data), "oid": "0" * 40}
                    for name, data in files.items()
                ],
            )
        elif (match := _API.match(path)) and (match[1], match[2]) in self.repos:
            files = self.repos[(match[1], match[2])]
            names = [{"rfilename": name} for name in files]
            self._answer(200, {"id": match[2], "sha": COMMIT, "siblings": names, "private": False})
        else:
            code = {"X-Error-Code": "RepoNotFound"}
            self._answer(404, {"error": "Repository not found"}, code)

    do_HEAD = do_GET

    def _answer(self, status: int, data: Any, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(data).encode(), headers or {})

    def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@contextmanager
def serve_hub() -> Iterator[tuple[str, Repos]]:
    """Serve an empty hub at a free port; yield its address and what it holds."""
    repos: Repos = {}
    server = QuietServer(("127.0.0.1", 0), type("Hub", (_Hub,), {"repos": repos}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", repos
    finally:
        server.shutdown()
        server.server_close()
