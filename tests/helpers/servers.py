"""A server of files that fails on the way, and patience that is short."""

import hashlib
import http.server
import threading

import pytest

from mc2papers.datasets.download.fetch import Patience

DATA = hashlib.shake_256(b"a source file").digest(300_000)


IMPATIENT = Patience(connect_seconds=2, stall_seconds=0.4, tries=3, pause_seconds=0.01)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, behave):
        super().__init__(("127.0.0.1", 0), Handler)
        self.behave, self.requests = behave, []
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def address(self, name="file.bin"):
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.close_connection = True
        self.server.requests.append(dict(self.headers))
        self.server.behave(self, len(self.server.requests))

    def log_message(self, *args):
        pass

    def give(self, data=DATA, start=0, cut=None, status=200, **headers):
        """Send ``data[start:]`` but stop after ``cut`` bytes of it."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(data) - start))
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data[start:] if cut is None else data[start : start + cut])

    def range_start(self):
        wanted = self.headers.get("Range")
        return int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else None

    def give_rest(self, data=DATA, cut=None, etag='"one"'):
        """What a server that supports ranges does."""
        start = self.range_start()
        if start is None or self.headers.get("If-Range") not in (None, etag):
            self.give(data, cut=cut, ETag=etag)
        elif start >= len(data):
            self.give(b"", status=416, Content_Range=f"bytes */{len(data)}")
        else:
            span = f"bytes {start}-{len(data) - 1}/{len(data)}"
            self.give(data, start, cut, status=206, ETag=etag, Content_Range=span)


@pytest.fixture
def serve():
    servers = []

    def start(behave):
        servers.append(Server(behave))
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
