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
"""The two node classes around one pipeline: plain, and with a managed life cycle."""

from __future__ import annotations

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node

from graph_depth_refiner.ros.node_main import NAME, naming
from graph_depth_refiner.ros.pipeline import Pipeline

SUCCESS = TransitionCallbackReturn.SUCCESS


class RefinerNode(Node):
    """Refines from the start."""

    def __init__(self, **options) -> None:
        """Start at once."""
        super().__init__(NAME, **options)
        with naming(self.get_name()):
            self.pipeline = Pipeline(self)
            self.pipeline.advertise()
            self.pipeline.start()


class LifecycleRefinerNode(LifecycleNode):
    """Advertises when configured, refines while active."""

    def __init__(self, **options) -> None:
        """Declare the parameters."""
        super().__init__(NAME, **options)
        with naming(self.get_name()):
            self.pipeline = Pipeline(self)

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Advertise outputs and services."""
        self.pipeline.advertise()
        return SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Listen and refine."""
        self.pipeline.start()
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop listening and refining."""
        self.pipeline.stop()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Take back outputs and services."""
        self.pipeline.withdraw()
        return SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop, from whatever state."""
        self.pipeline.stop()
        return SUCCESS
