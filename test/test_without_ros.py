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
"""The core needs no ROS: only the outermost files import it."""

from pathlib import Path
import subprocess
import sys

ROOT = Path(__file__).parent.parent
ROS = ('rclpy', 'rcl_interfaces', 'sensor_msgs', 'stereo_msgs', 'std_msgs', 'std_srvs',
       'geometry_msgs', 'nav_msgs', 'diagnostic_msgs', 'diagnostic_updater', 'lifecycle_msgs',
       'rosgraph_msgs', 'builtin_interfaces', 'message_filters', 'launch', 'launch_ros',
       'ament_index_python', 'cv_bridge', 'rosidl_runtime_py')
TOOLS = ('benchmarks', 'soak')  # run the node
CODE = """
import importlib, sys
for name in sys.argv[1].split(','):
    sys.modules[name] = None  # importing it raises ImportError
failed = []
for name in sys.argv[2].split(','):
    try:
        importlib.import_module('graph_depth_refiner.' + name)
    except ImportError as error:
        failed.append(f'{name}: {error}')
print('; '.join(failed))
"""


def imports_ros(path):
    """Tell whether a file is part of the ROS shell."""
    lines = path.read_text().splitlines()
    words = [line.split() for line in lines if line.startswith(('import ', 'from '))]
    return any(word[1].split('.')[0] in ROS for word in words)


def test_core_imports_without_ros():
    package = ROOT / 'graph_depth_refiner'
    modules = {
        '.'.join(path.relative_to(package).with_suffix('').parts): path
        for path in sorted(package.rglob('*.py'))
        if path.stem != '__main__' and path.parent.name not in TOOLS}
    core = [name for name, path in modules.items() if not imports_ros(path)]
    needed = {'config', 'frame', 'refiner', 'core.kernels', 'core.minimise', 'cli.main',
              'messages.conversions', 'messages.outgoing', 'ros.processing', 'files.reading',
              'bags.bags', 'lab.evaluation.metrics'}
    assert needed <= set(core)
    # A file that imports the ROS shell belongs to it, unless it does so late.
    shell = set(modules) - set(core)
    done = subprocess.run(
        [sys.executable, '-c', CODE, ','.join(ROS), ','.join(core)], cwd=ROOT,
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == '', f'{done.stdout} (shell: {sorted(shell)})'
