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
"""Parameters set together over DDS while frames are in flight are used together."""

import threading

from node_bench import Bench
import pytest
from rcl_interfaces.srv import SetParametersAtomically
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter

from graph_depth_refiner.ros.nodes import RefinerNode

STEPS = range(1, 13)


@pytest.fixture
def node_and_bench():
    """Run the node in this process, where one can look inside."""
    rclpy.init()
    node = RefinerNode(parameter_overrides=[Parameter('shed_load', value=False)])
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    thread = threading.Thread(target=executor.spin, daemon=True)
    thread.start()
    bench = Bench(outputs=['depth_refined/image'])
    yield node, bench
    assert node.pipeline.stop(10.0)
    executor.shutdown()
    thread.join(10.0)
    bench.close()
    node.destroy_node()
    rclpy.try_shutdown()


def test_values_set_together_are_used_together(node_and_bench):
    node, bench = node_and_bench
    bench.refines()
    processor = node.pipeline.processor
    assembler, refiner = processor._assembler, processor.refiner
    assemble, refine = assembler.assemble, refiner.refine
    read, used = [], []  # by frame: what the reading of messages saw, and what the refiner did

    def watched_assemble(inputs, config):
        read.append(round(100 * config.confidence.threshold))
        return assemble(inputs, config)

    def watched_refine(frame):
        used.append(refiner.config.solver.iterations)
        return refine(frame)

    assembler.assemble, refiner.refine = watched_assemble, watched_refine
    client = bench.node.create_client(
        SetParametersAtomically, '/refiner_node/set_parameters_atomically')
    assert client.wait_for_service(10.0)
    answers, asked = [], []

    def storm():
        """Set a pair of equal steps and send a frame, again and again."""
        step = STEPS[len(asked) % len(STEPS)]
        asked.append(client.call_async(SetParametersAtomically.Request(parameters=[
            Parameter('solver.iterations', value=step).to_parameter_msg(),
            Parameter('confidence.threshold', value=step / 100).to_parameter_msg()])))
        asked[-1].add_done_callback(lambda f: answers.append(f.result().result.successful))
        bench.send()
        bench.spin(0.02)
        return len(set(used)) > 6

    bench.wait_for(storm, 'seven different configurations in use')
    bench.wait_for(lambda: len(answers) == len(asked), 'all answers')
    bench.wait_for(lambda: not node.pipeline.worker.load, 'an idle worker')
    assert all(answers)
    pairs = [pair for pair in zip(read, used, strict=True) if pair[0] > 0]  # after the first set
    assert all(threshold == iterations for threshold, iterations in pairs)
