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
"""The page of the demo: table, two turning clouds, panel; plain JavaScript, nothing is loaded."""

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>graph_depth_refiner</title>
<link rel="icon" href="data:,">
<style>
body { font: 14px system-ui, sans-serif; margin: 1em; background: #fff; color: #222 }
img { max-width: 100%; display: block } pre { font-size: 13px; overflow-x: auto }
figure { display: inline-block; margin: 0 8px 8px 0 }
canvas { background: #10141a; cursor: grab; max-width: 100% }
</style></head><body>
<h1>Depth refinement, live</h1>
<p id="state">waiting for the first frame</p>
<figure><canvas id="input" width="480" height="360"></canvas>
<figcaption>input: <span id="input-points">0</span> points</figcaption></figure>
<figure><canvas id="refined" width="480" height="360"></canvas>
<figcaption>refined: <span id="refined-points">0</span> points</figcaption></figure>
<p>Drag to turn, scroll to come nearer.</p>
<img id="panel" alt="image, depth, errors and normals: input, RealSense-style filter, refined">
<pre id="table"></pre>
<script>
'use strict';
const STRIDE = 16, BACK = 0xff1a1410;  // bytes of a point; background as ABGR
const byId = id => document.getElementById(id);
const clouds = {input: null, refined: null};
let pivot = [0, 0, 1], yaw = 0, pitch = 0, zoom = 1, dragged = null;

class Painter {  // draws points with a depth buffer, each as a small square
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
    this.image = this.context.createImageData(canvas.width, canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.depth = new Float32Array(this.pixels.length);
  }
  draw(cloud, turn, tilt) {
    const {width, height} = this.canvas, focal = 0.85 * width * zoom, {pixels, depth} = this;
    const cy = Math.cos(turn), sy = Math.sin(turn), cp = Math.cos(tilt), sp = Math.sin(tilt);
    pixels.fill(BACK);
    depth.fill(Infinity);
    const {xyz, color} = cloud, spread = focal / cloud.focal;
    for (let i = 0, p = 0; i < color.length; i += 4, p += 4) {
      const x = xyz[p] - pivot[0], y = xyz[p + 1] - pivot[1], z = xyz[p + 2] - pivot[2];
      const zt = cy * z - sy * x, xt = cy * x + sy * z;
      const yt = cp * y - sp * zt, far = cp * zt + sp * y + pivot[2];
      if (far < 0.05) continue;
      const size = Math.min(8, Math.max(1, Math.ceil(spread * xyz[p + 2] / far)));
      const left = Math.round(width / 2 + focal * xt / far - size / 2);
      const top = Math.round(height / 2 + focal * yt / far - size / 2);
      for (let row = Math.max(0, top); row < Math.min(height, top + size); row++)
        for (let column = Math.max(0, left); column < Math.min(width, left + size); column++) {
          const at = row * width + column;
          if (far < depth[at]) { depth[at] = far; pixels[at] = color[i + 3]; }
        }
    }
    this.context.putImageData(this.image, 0, 0);
  }
}
const painters = {input: new Painter(byId('input')), refined: new Painter(byId('refined'))};

function unpack(bytes, first, count, focal) {
  const start = first * STRIDE, length = count * STRIDE / 4;
  return {focal: focal, xyz: new Float32Array(bytes, start, length),
          color: new Uint32Array(bytes, start, length)};
}
function animate(time) {
  const turn = yaw + 0.35 * Math.sin(time / 1700), tilt = pitch + 0.12 * Math.sin(time / 2900);
  for (const name in clouds) if (clouds[name]) painters[name].draw(clouds[name], turn, tilt);
  requestAnimationFrame(animate);
}
for (const name in painters) {
  const canvas = painters[name].canvas;
  canvas.onpointerdown = event => {
    dragged = [event.clientX, event.clientY];
    canvas.setPointerCapture(event.pointerId);
  };
  canvas.onpointerup = () => { dragged = null; };
  canvas.onpointermove = event => {
    if (!dragged) return;
    yaw += (event.clientX - dragged[0]) / 200;
    pitch += (event.clientY - dragged[1]) / 200;
    dragged = [event.clientX, event.clientY];
  };
  canvas.onwheel = event => {
    event.preventDefault();
    zoom = Math.min(8, Math.max(0.3, zoom * Math.exp(-event.deltaY / 500)));
  };
}
async function look(last) {
  try {
    const now = await (await fetch('state.json', {cache: 'no-store'})).json();
    if (now.frame > last) {
      last = now.frame;
      const answer = await fetch('clouds.bin?' + last, {cache: 'no-store'});
      const bytes = await answer.arrayBuffer();
      if (bytes.byteLength === STRIDE * (now.input + now.refined)) {  // of this very frame
        pivot = now.pivot;
        clouds.input = unpack(bytes, 0, now.input, now.focal);
        clouds.refined = unpack(bytes, now.input, now.refined, now.focal);
        for (const name in clouds) byId(name + '-points').textContent = now[name];
      }
      byId('panel').src = 'panel.jpg?' + last;
      byId('table').textContent = now.table;
      byId('state').textContent = 'frame ' + last;
    }
    setTimeout(look, 200, last);
  } catch (error) {
    byId('state').textContent = 'the demo has ended';
  }
}
requestAnimationFrame(animate);
look(-1);
</script></body></html>
"""
