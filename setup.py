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
"""Install the package the ament way."""

from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = 'graph_depth_refiner'
SHARE = Path('share') / PACKAGE
COMMANDS = (
    'graph_depth_refiner', 'refine', 'refine_bag', 'refine_colmap', 'make_bag', 'evaluate',
    'benchmark', 'soak', 'demo', 'config', 'warm_up',
)
# cpu: what package.xml asks of the system, for a Python without ROS; the others: what a part of
# the package needs beyond that, and says so where it is missing
EXTRAS = {
    'cpu': ['numba', 'numpy', 'opencv-contrib-python-headless', 'PyYAML', 'tqdm'],
    'gpu': ['torch'],
    'recordings': ['rosbags'],
    'cluster': ['dask[distributed]'],
    'exr': ['OpenEXR'],
    'realsense': ['pyrealsense2'],
    'gpu-test': ['triton'],  # CUDA builds of PyTorch bring it
    'colmap': ['pycolmap'],
    'rerun': ['rerun-sdk'],
}


def shared(folder):
    """List the files of a folder with the place they are installed in."""
    found = {}
    for path in sorted(Path(folder).rglob('*')):
        if path.is_file() and '__pycache__' not in path.parts:
            found.setdefault(str(SHARE / path.parent), []).append(str(path))
    return list(found.items())


setup(
    name=PACKAGE,
    version='0.2.0',
    packages=find_packages(exclude=['test', 'test.*']),
    package_data={PACKAGE: ['py.typed']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{PACKAGE}']),
        (str(SHARE), ['package.xml']),
        *shared('launch'),
        *shared('config'),
    ],
    install_requires=['setuptools'],
    extras_require=EXTRAS,
    zip_safe=True,
    author='graph_depth_refiner contributors',
    maintainer='graph_depth_refiner contributors',
    maintainer_email='maintainers@graph-depth-refiner.org',
    description='Real-time refinement of depth images with a planar prior on a graph of patches',
    license='Apache-2.0',
    tests_require=['pytest'],
    entry_points={
        'console_scripts': [
            'refiner_node = graph_depth_refiner.ros.refiner_node:main',
            'refiner_lifecycle_node = graph_depth_refiner.ros.lifecycle_node:main',
            'play_bag = graph_depth_refiner.bags.play_bag:main',
            'demo_camera = graph_depth_refiner.lab.demo.camera:main',
            'demo_monitor = graph_depth_refiner.lab.demo.monitor:main',
            *(f'{name} = graph_depth_refiner.cli.main:main' for name in COMMANDS),
        ],
    },
)
