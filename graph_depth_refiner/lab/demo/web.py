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
"""The panel of the demo in a browser, updated as frames come; on this machine only."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json
import threading

HOST = '127.0.0.1'
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>graph_depth_refiner</title>
<link rel="icon" href="data:,">
<style>
body { font: 14px system-ui, sans-serif; margin: 1em; background: #fff; color: #222 }
img { max-width: 100%; display: block } pre { font-size: 13px; overflow-x: auto }
</style></head><body>
<h1>Depth refinement, live</h1>
<p id="state">waiting for the first frame</p>
<img id="panel" alt="image, depth, errors and normals: input, RealSense-style filter, refined">
<pre id="table"></pre>
<script>
let last = -1, waiting = false;
const panel = document.getElementById('panel');
panel.onload = panel.onerror = () => { waiting = false; };
async function look() {
  try {
    const now = await (await fetch('state.json', {cache: 'no-store'})).json();
    if (now.frame > last && !waiting) {
      last = now.frame;
      waiting = true;
      panel.src = 'panel.jpg?' + now.frame;
      document.getElementById('table').textContent = now.table;
      document.getElementById('state').textContent = 'frame ' + now.frame;
    }
    setTimeout(look, 200);
  } catch (error) {
    document.getElementById('state').textContent = 'the demo has ended';
  }
}
look();
</script></body></html>
"""


class WebPanel:
    """Serves the newest panel and table."""

    def __init__(self, port: int) -> None:
        """Open the port (0: any free one) and serve in a thread of its own."""
        self._frame, self._table, self._jpeg = -1, '', b''
        self._lock = threading.Lock()
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

    def show(self, frame: int, table: str, jpeg: bytes) -> None:
        """Make this the newest panel."""
        with self._lock:
            self._frame, self._table, self._jpeg = frame, table, jpeg

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, path: str) -> tuple[str, bytes] | None:
        with self._lock:
            if path == '/':
                return 'text/html; charset=utf-8', PAGE.encode()
            if path == '/state.json':
                state = {'frame': self._frame, 'table': self._table}
                return 'application/json', json.dumps(state).encode()
            if path == '/panel.jpg' and self._jpeg:
                return 'image/jpeg', self._jpeg
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answer = self._answer

        class Handler(BaseHTTPRequestHandler):
            """Answers GET for the three things there are."""

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
