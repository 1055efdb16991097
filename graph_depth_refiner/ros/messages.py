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
"""Fills ROS messages with fields, each payload by one copy."""

from __future__ import annotations

from array import array
from importlib import import_module
from typing import Any

from sensor_msgs.msg import PointField


def message_type(package: str, name: str) -> type:
    """Return a message class."""
    return getattr(import_module(f'{package}.msg'), name)


def filled(kind: type, header: Any, fields: dict[str, Any]) -> Any:
    """Return a message of a kind with this header and these fields."""
    message = kind(header=header)
    for name, value in fields.items():
        if name == 'data':
            # the setter of `data` checks every byte of anything but an array
            payload = array('B')
            payload.frombytes(value)
            message.data = payload
        elif name == 'fields':
            message.fields = [PointField(**field) for field in value]
        elif isinstance(value, dict):
            setattr(message, name, filled(type(getattr(message, name)), header, value))
        else:
            setattr(message, name, value)
    return message
