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
"""Whatever rclpy raises at a shutdown ends a node quietly; other errors stay errors."""

import sys

import pytest
import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor

from graph_depth_refiner.ros.spinning import until_shutdown


@pytest.fixture
def executor():
    rclpy.init()
    executor = SingleThreadedExecutor()
    executor.add_node(rclpy.create_node('waiting'))
    yield executor
    executor.shutdown()
    rclpy.try_shutdown()


def test_shutdown_between_two_calls_of_rcl(executor):
    rclpy.shutdown()
    with pytest.raises(RuntimeError):
        executor.spin_once(0.1)
    with until_shutdown():
        executor.spin_once(0.1)


def test_shutdown_told_by_rclpy():
    with until_shutdown():
        raise ExternalShutdownException


def test_errors_of_a_live_node_are_raised(executor):
    with pytest.raises(RuntimeError, match='a real one'), until_shutdown():
        raise RuntimeError('a real one')


def test_an_executor_whose_making_was_cut_short_is_deleted_quietly(monkeypatch):
    said = []
    monkeypatch.setattr(sys, 'unraisablehook', said.append)
    half_made = SingleThreadedExecutor.__new__(SingleThreadedExecutor)
    del half_made
    assert said == []
