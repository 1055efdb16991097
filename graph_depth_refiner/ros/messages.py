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
from collections.abc import Callable
from importlib import import_module
import math
from typing import Any

import numpy as np
from sensor_msgs.msg import PointField

from graph_depth_refiner.messages.outgoing import Room


def message_type(package: str, name: str) -> type:
    """Return a message class."""
    return getattr(import_module(f'{package}.msg'), name)


class KeptMessage:
    """One message that is filled again and again: its memory is there already."""

    def __init__(self, kind: type) -> None:
        """Start empty."""
        self._message = kind()
        self._holder = getattr(self._message, 'image', self._message)  # of the data

    def filled(self, header: Any, make: Callable[[Room], dict[str, Any]]) -> Any:
        """Return the message with this header and the fields that are made in its memory."""
        return _fill(self._message, header, make(self._room))

    def _room(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return the data of the message as an array."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size != len(self._holder.data):
            self._holder.data = array('B', bytes(size))
        return np.frombuffer(self._holder.data, dtype).reshape(shape)


def filled(kind: type, header: Any, fields: dict[str, Any]) -> Any:
    """Return a new message of a kind with this header and these fields."""
    return _fill(kind(), header, fields)


def _fill(message: Any, header: Any, fields: dict[str, Any]) -> Any:
    """Fill a message; data that lies in its memory already is not copied."""
    message.header = header
    for name, value in fields.items():
        if name == 'data':
            if not _lies_in(message.data, value):
                message.data = _array(value)
        elif name == 'fields':
            if [field.name for field in message.fields] != [field['name'] for field in value]:
                message.fields = [PointField(**field) for field in value]
        elif isinstance(value, dict):
            _fill(getattr(message, name), header, value)
        else:
            setattr(message, name, value)
    return message


def _lies_in(memory: array, data: np.ndarray) -> bool:
    """Tell whether data is the whole of a memory."""
    return len(memory) == len(data) > 0 and np.may_share_memory(np.frombuffer(memory, 'B'), data)


def _array(data: np.ndarray) -> array:
    """Return data as what messages take without looking at every byte."""
    copy = array('B')
    copy.frombytes(data)
    return copy
