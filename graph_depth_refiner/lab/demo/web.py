# Copyright 2026 graph_depth_refiner contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The demo in a browser, updated as frames come; on this machine only."""

from __future__ import annotations

from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json
import threading
from typing import Any

import numpy as np

from graph_depth_refiner.lab.demo.clouds import pivot, POINT
from graph_depth_refiner.lab.demo.page import PAGE

HOST = '127.0.0.1'


@dataclass(frozen=True, eq=False)
class Shown:
    """What the page shows of one frame."""

    frame: int
    table: str = ''
    jpeg: bytes = b''
    input: np.ndarray = field(default_factory=lambda: np.zeros(0, POINT))  # N of POINT
    refined: np.ndarray = field(default_factory=lambda: np.zeros(0, POINT))  # N of POINT
    focal: float = 1.0  # focal length in steps from point to point

    def state(self) -> dict[str, Any]:
        """Return what the page needs to know before it fetches the rest."""
        return {'frame': self.frame, 'table': self.table, 'input': len(self.input),
                'refined': len(self.refined), 'pivot': pivot(self.refined), 'focal': self.focal}


class WebPanel:
    """Serves the newest panel, table and clouds."""

    def __init__(self, port: int) -> None:
        """Open the port (0: any free one) and serve in a thread of its own."""
        self._shown = Shown(-1)
        try:
            self._server = ThreadingHTTPServer((HOST, port), self._handler())
        except (OSError, OverflowError) as error:
            raise ValueError(f'web: expected a free port, got {port} ({error})') from None
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """Return where to look."""
        return f'http://{HOST}:{self._server.server_address[1]}/'

    def show(self, shown: Shown) -> None:
        """Make this the newest frame."""
        self._shown = shown

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, path: str) -> tuple[str, bytes] | None:
        shown = self._shown
        if path == '/':
            return 'text/html; charset=utf-8', PAGE.encode()
        if path == '/state.json':
            return 'application/json', json.dumps(shown.state()).encode()
        if path == '/panel.jpg' and shown.jpeg:
            return 'image/jpeg', shown.jpeg
        if path == '/clouds.bin':
            clouds = shown.input.tobytes() + shown.refined.tobytes()
            return 'application/octet-stream', clouds
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answer = self._answer

        class Handler(BaseHTTPRequestHandler):
            """Answers GET for the few things there are."""

            def do_GET(self) -> None:  # noqa: N802
                """Answer one request."""
                found = answer(self.path.partition('?')[0])
                if found is None:
                    self.send_error(404)
                    return
                kind, body = found
                self.send_response(200)
                self.send_header('Content-Type', kind)
                self.send_header('Content-Length', str(len(body)))
                self.send_header('Cache-Control', 'no-store')
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing: one line a request helps nobody."""

        return Handler
