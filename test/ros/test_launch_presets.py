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
"""
Every preset of config/ with the messages of its driver, over DDS.

Names, encodings, frame ids and calibrations are those of the drivers' sources. All nodes run in
one process, so that the kernels are loaded once.
"""

from dataclasses import dataclass, replace
from pathlib import Path
import sys
import time
import unittest

from builtin_interfaces.msg import Time
from launch import LaunchDescription
from launch.actions import ExecuteProcess
from launch_ends import CleanEnd
import launch_testing
from launch_testing.actions import ReadyToTest
import numpy as np
import pytest
import rclpy
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Header
from stereo_msgs.msg import DisparityImage

TEST = Path(__file__).parents[1]
CONFIG = TEST.parent / 'config'
HEIGHT, WIDTH, FOCAL = 64, 96, 80.0
DEPTH, BASELINE = 2.0, 0.06  # metres
PATIENCE = 90.0  # seconds; the kernels may have to be compiled first
ZEROS = [0.0] * 5
# four radial numbers more than plumb_bob once had: Orbbec's driver and Azure Kinect
EIGHT = [0.08, -0.03, 5e-4, -3e-4, 0.01, 0.1, -0.02, 0.005]
BROWN = [-0.05, 0.06, -8e-4, 1e-3, -0.02]
DTYPES = {'rgb8': ('u1', 3), 'bgr8': ('u1', 3), 'bgra8': ('u1', 4), 'mono8': ('u1', 1),
          'mono16': ('u2', 1), '16UC1': ('u2', 1), '32FC1': ('f4', 1)}


@dataclass(frozen=True)
class Driver:
    """What a driver publishes: topic and encoding of images, frames, calibration."""

    image: tuple[str, str]
    depth: tuple[str, str]
    info: str
    frame: str  # of the depth and its calibration
    image_frame: str = ''  # where it is another
    model: tuple[str, list[float]] = ('plumb_bob', ZEROS)
    confidence: tuple[str, str, float, float] | None = None  # and its good and bad values
    image_info: str = ''
    unit: float = 0.0  # metres of the depth; 0: as usual
    arguments: str = ''  # of the node, besides the preset
    preset: str = ''  # if it is not named as the camera


ORBBEC = Driver(('color/image_raw', 'rgb8'), ('depth/image_raw', '16UC1'), 'depth/camera_info',
                'camera_color_optical_frame', model=('plumb_bob', EIGHT))
OAK = Driver(('rgb/image_raw', 'bgr8'), ('stereo/image_raw', '16UC1'), 'stereo/camera_info',
             'oak_rgb_camera_optical_frame', model=('rational_polynomial', [0.0] * 8))
REALSENSE = Driver(
    ('color/image_raw', 'rgb8'), ('aligned_depth_to_color/image_raw', '16UC1'),
    'aligned_depth_to_color/camera_info', 'camera_color_optical_frame')
ZED_FRAME = 'zed_left_camera_frame_optical'
SEPARATE = replace(ORBBEC, preset='orbbec', frame='camera_depth_optical_frame',
                   image_frame='camera_color_optical_frame', image_info='color/camera_info')
DRIVERS = {
    'azure_kinect': Driver(
        ('rgb/image_raw', 'bgra8'), ('depth_to_rgb/image_raw', '32FC1'),
        'depth_to_rgb/camera_info', 'rgb_camera_link', model=('rational_polynomial', EIGHT)),
    'femto': ORBBEC,
    'gazebo': Driver(('image', 'rgb8'), ('depth_image', '32FC1'), 'camera_info',
                     'robot/link/rgbd_camera_optical'),
    'isaac_sim': Driver(('rgb', 'rgb8'), ('depth', '32FC1'), 'camera_info', 'sim_camera'),
    'l515': Driver(('infra/image_rect_raw', 'mono8'), ('depth/image_rect_raw', '16UC1'),
                   'depth/camera_info', 'camera_depth_optical_frame',
                   'camera_infra_optical_frame',
                   confidence=('confidence/image_rect_raw', 'mono8', 15, 0)),
    'oak_d': OAK,
    'oak_d_v2': replace(OAK, image=('rgb/image_rect', 'bgr8')),
    'orbbec': ORBBEC,
    'realsense_d400': REALSENSE,
    'realsense_d405': replace(REALSENSE, model=('plumb_bob', BROWN)),
    'realsense_d400_infra1': Driver(
        ('infra1/image_rect_raw', 'mono8'), ('depth/image_rect_raw', '16UC1'),
        'depth/camera_info', 'camera_depth_optical_frame', 'camera_infra1_optical_frame'),
    'stereo_image_proc': Driver(
        ('left/image_rect_color', 'bgr8'), ('disparity', '32FC1'), 'left/camera_info',
        'left_camera_optical_frame', model=('plumb_bob', BROWN)),
    'tof': Driver(('amplitude/image_raw', 'mono16'), ('depth/image_raw', '32FC1'),
                  'depth/camera_info', 'tof_optical_frame', model=('plumb_bob', BROWN),
                  confidence=('amplitude/image_raw', 'mono16', 900, 5)),
    'zed': Driver(('rgb/color/rect/image', 'bgra8'), ('depth/depth_registered', '32FC1'),
                  'depth/camera_info', ZED_FRAME,
                  confidence=('confidence/confidence_map', '32FC1', 1, 100)),
}
# depth and image of two cameras, 5 cm apart: told how, and not told
OTHERS = {
    'told': replace(SEPARATE, arguments='|-p|depth_in_image:=-0.05 0 0 0 0 0 1'),
    'tenths_of_millimetres': replace(
        ORBBEC, preset='orbbec', unit=1e-4, arguments='|-p|depth_scale:=0.0001'),
}
REFINED = {**DRIVERS, **OTHERS}
REFUSED = 'untold'


@pytest.mark.launch_test
def generate_test_description():
    """Start a refiner for each driver."""
    nodes = ExecuteProcess(
        cmd=[sys.executable, str(TEST / 'preset_nodes.py'), *(
            f'{name}=--params-file|{CONFIG / (driver.preset or name)}.yaml|-p|device:=cpu'
            f'{driver.arguments}' for name, driver in {**REFINED, REFUSED: SEPARATE}.items())],
        output='screen', name='nodes', additional_env={'PYTHONUNBUFFERED': '1'})
    return LaunchDescription([nodes, ReadyToTest()]), {'nodes': nodes}


def image(encoding, pixels, header):
    """Return an Image message of an array."""
    kind, channels = DTYPES[encoding]
    data = np.ascontiguousarray(pixels, kind)
    return Image(header=header, height=HEIGHT, width=WIDTH, encoding=encoding,
                 step=WIDTH * channels * data.itemsize, data=data.tobytes())


def messages(driver, stamp):
    """Return the messages of a driver at a moment, by topic."""
    rng = np.random.default_rng(0)
    header = Header(stamp=stamp, frame_id=driver.frame)
    other = Header(stamp=stamp, frame_id=driver.image_frame or driver.frame)
    encoding = driver.image[1]
    channels = DTYPES[encoding][1]
    shape = (HEIGHT, WIDTH, channels) if channels > 1 else (HEIGHT, WIDTH)
    found = {driver.image[0]: image(encoding, rng.integers(0, 255, shape), other)}
    depth = rng.normal(DEPTH, 0.004, (HEIGHT, WIDTH))
    info = camera_info(driver, header)
    if driver.depth[0] == 'disparity':
        found['disparity'] = DisparityImage(
            header=header, f=FOCAL, t=BASELINE, min_disparity=0.0, max_disparity=64.0,
            image=image('32FC1', FOCAL * BASELINE / depth, header))
    elif driver.depth[1] == '16UC1':
        found[driver.depth[0]] = image('16UC1', np.rint(depth / (driver.unit or 0.001)), header)
    else:
        depth[:4, :4] = np.inf if driver.image[0] == 'image' else np.nan
        found[driver.depth[0]] = image('32FC1', depth, header)
    if driver.confidence:
        topic, encoding, good, bad = driver.confidence
        values = np.where(np.arange(WIDTH) < WIDTH // 2, good, bad) * np.ones((HEIGHT, 1))
        found[topic] = image(encoding, values, header)
    found[driver.info] = info
    if driver.image_info:
        found[driver.image_info] = camera_info(driver, other)
    return found


def measured(driver):
    """Return the depth in metres, H W, that the messages of a driver have."""
    came = messages(driver, Time())[driver.depth[0]]
    if driver.depth[0] == 'disparity':
        return FOCAL * BASELINE / array(came.image)
    return array(came) * ((driver.unit or 0.001) if came.encoding == '16UC1' else 1.0)


def camera_info(driver, header):
    """Return the calibration of a driver."""
    model, d = driver.model
    cx, cy = WIDTH / 2 - 0.5, HEIGHT / 2 - 0.5
    return CameraInfo(
        header=header, height=HEIGHT, width=WIDTH, distortion_model=model, d=d,
        k=[FOCAL, 0.0, cx, 0.0, FOCAL, cy, 0.0, 0.0, 1.0],
        r=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        p=[FOCAL, 0.0, cx, 0.0, 0.0, FOCAL, cy, 0.0, 0.0, 0.0, 1.0, 0.0])


def array(message):
    """Return the pixels of an Image message."""
    return np.frombuffer(message.data, DTYPES[message.encoding][0]).reshape(HEIGHT, WIDTH)


class TestRunning(unittest.TestCase):
    """While they run."""

    def setUp(self):
        rclpy.init()
        self.node = rclpy.create_node('drivers')
        self.publishers = {
            (name, topic): self.node.create_publisher(
                type(message), f'/{name}/{topic}', qos_profile_sensor_data)
            for name, driver in {**REFINED, REFUSED: SEPARATE}.items()
            for topic, message in messages(driver, self.node.get_clock().now().to_msg()).items()}
        self.heard = {}
        for name in (*REFINED, REFUSED):
            for output in ('image', 'confidence'):
                self.node.create_subscription(
                    Image, f'/{name}/depth_refined/{output}',
                    lambda message, key=(name, output): self.heard.__setitem__(key, message), 10)

    def tearDown(self):
        self.node.destroy_node()
        rclpy.try_shutdown()

    def spin(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            rclpy.spin_once(self.node, timeout_sec=max(0.0, end - time.monotonic()))

    def test_every_driver(self, proc_output, nodes):
        wanted = {(name, output) for name in REFINED for output in ('image', 'confidence')}
        end = time.monotonic() + PATIENCE
        while not wanted <= set(self.heard):
            missing = sorted(wanted - set(self.heard))
            self.assertLess(time.monotonic(), end, f'nothing came back of {missing}')
            stamp = self.node.get_clock().now().to_msg()
            for name, driver in {**REFINED, REFUSED: SEPARATE}.items():
                if name == REFUSED or not {(name, 'image'), (name, 'confidence')} <= set(
                        self.heard):
                    for topic, message in messages(driver, stamp).items():
                        self.publishers[name, topic].publish(message)
            self.spin(0.3)
        for name, driver in REFINED.items():
            with self.subTest(name):
                self.look(driver, self.heard[name, 'image'], self.heard[name, 'confidence'])
        proc_output.assertWaitFor(
            "image.header.frame_id: expected 'camera_depth_optical_frame'", process=nodes,
            timeout=10)
        self.assertNotIn((REFUSED, 'image'), self.heard)

    def look(self, driver, depth, confidence):
        """Check what came back."""
        self.assertEqual(depth.header.frame_id, driver.frame)
        self.assertEqual(depth.encoding, driver.depth[1])
        metres = array(depth) * (0.001 if depth.encoding == '16UC1' else 1.0)
        middle = metres[16:48, 8:40]  # of good confidence
        self.assertLess(abs(np.nanmedian(middle) - DEPTH), 0.01)
        self.assertLess(np.nanstd(middle), np.nanstd(measured(driver)[16:48, 8:40]))
        if driver.confidence:
            sure = array(confidence)
            self.assertGreater(sure[16:48, 8:40].mean(), sure[16:48, 56:88].mean() + 0.3)

    def test_no_preset_is_left_out(self):
        self.assertEqual(set(DRIVERS), {path.stem for path in CONFIG.glob('*.yaml')})


@launch_testing.post_shutdown_test()
class TestEnd(CleanEnd, unittest.TestCase):
    """After SIGINT."""
