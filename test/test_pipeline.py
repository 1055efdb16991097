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
"""A failing solver is logged once, counted, and survived."""

import threading

from node_bench import Bench
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor

from graph_depth_refiner.nodes import RefinerNode

FAILURES = 3


@pytest.fixture
def node_and_bench():
    """Run the node in this process, where its solver can be broken."""
    rclpy.init()
    node = RefinerNode()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    thread = threading.Thread(target=executor.spin, daemon=True)
    thread.start()
    bench = Bench()
    yield node, bench
    assert node.pipeline.stop(10.0)
    executor.shutdown()
    thread.join(10.0)
    bench.close()
    node.destroy_node()
    rclpy.try_shutdown()


def test_solver_exception(node_and_bench, capfd):
    node, bench = node_and_bench
    bench.refines()
    processor = node.pipeline.processor
    refine, left = processor.refiner.refine, list(range(FAILURES))

    def break_down(frame):
        if not left:
            return refine(frame)
        raise RuntimeError(f'out of memory, attempt {left.pop()}')

    processor.refiner.refine = break_down
    bench.wait_for(
        lambda: bench.send() and not bench.spin(0.1) and not left, 'all failures', 30.0)
    bench.refines()
    assert processor.ledger.snapshot()['failed'] == FAILURES
    assert capfd.readouterr().err.count('RuntimeError: out of memory') == 1
