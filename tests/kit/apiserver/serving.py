"""A scripted API server over HTTP, and the kubeconfig that leads to it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.kit.apiserver.kubeconfig import kubeconfig
from tests.kit.apiserver.scripted_api_server import ApiServer


@contextmanager
def serving(folder: Path) -> Iterator[tuple[ApiServer, Path]]:
    """An API server and a kubeconfig that leads to it."""
    api = ApiServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            assert self.headers["Authorization"] == "Bearer open sesame"
            api.wait_until_it_answers(self.command, self.path)
            if "watch=1" in self.path and not api.broken:
                self.watch()
                return
            status, thing = api.answer(self.command, self.path, self.headers["Content-Type"], body)
            content = api.nonsense or json.dumps(thing).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                self.close_connection = True  # whoever asked has gone

        do_PATCH = do_POST = do_DELETE = do_GET  # noqa: N815

        def watch(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for event in api.watch(self.path):
                    line = json.dumps(event).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                self.close_connection = True  # whoever watched has gone

        def log_message(self, *_: object) -> None:
            """A test's output is not the place."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cluster = {"server": f"http://127.0.0.1:{server.server_port}"}
        yield api, kubeconfig(folder / "kubeconfig", cluster, {"token": "open sesame"})
        api.close()
        server.shutdown()
