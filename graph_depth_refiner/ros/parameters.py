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
"""Tunables as ROS parameters: declared from the dataclasses, checked by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from graph_depth_refiner.config import Tunable, Tunables
from graph_depth_refiner.renamed import new_name, new_value, RENAMED

C = TypeVar('C', bound=Tunables)


class Parameters:
    """The parameters of a node that are tunables, kept as frozen dataclasses."""

    def __init__(self, node: Node, on_change: Callable[[set[str]], None] | None = None) -> None:
        """Listen to changes; `on_change` is told the names after a successful one."""
        self._node = node
        self._on_change = on_change
        self._configs: dict[type[Tunables], Tunables] = {}
        self._tunables: dict[str, Tunable] = {}
        # ROS 2 Humble has on_set only: there the values are applied as soon as they are checked.
        self._applies_late = hasattr(node, 'add_post_set_parameters_callback')
        if self._applies_late:
            node.add_pre_set_parameters_callback(self._convert)
            node.add_post_set_parameters_callback(self._apply)
        node.add_on_set_parameters_callback(self._validate)

    def declare(self, config: C) -> C:
        """Declare a set of tunables with these defaults; return it with the overrides applied."""
        values = self._old_overrides(config)
        for name, one in config.tunables().items():
            given = self._node.declare_parameter(
                name, values.get(name, config.value(name)), _any_type())
            values[name] = one.check(given.value)
        config = config.with_values(**values)
        for one in config.tunables().values():
            self._node.set_parameters([Parameter(one.name, value=config.value(one.name))])
            self._node.set_descriptor(one.name, descriptor(one))
            self._tunables[one.name] = one
        self._configs[type(config)] = config
        return config

    def values(self, kind: type[C]) -> C:
        """Return the present values of a declared set."""
        return self._configs[kind]

    def _old_overrides(self, config: Tunables) -> dict[str, Any]:
        """Return what is given at the start by old names, by new ones."""
        values = {}
        for old, new in RENAMED.items():
            if new not in config.tunables() or self._node.has_parameter(old):
                continue
            # declared for a moment: the public way to see an override
            given = self._node.declare_parameter(old, None, _any_type())
            if given.type_ != Parameter.Type.NOT_SET:
                values[new_name(old, config.tunables())] = new_value(old, given.value)
            self._node.undeclare_parameter(old)
        return values

    def _convert(self, parameters: list[Parameter]) -> list[Parameter]:
        """Take old names, and a whole number for a number, as people write it."""
        return [self._as_number(self._renamed(one)) for one in parameters]

    def _renamed(self, parameter: Parameter) -> Parameter:
        name = new_name(parameter.name, self._tunables)
        if name == parameter.name:
            return parameter
        return Parameter(name, value=new_value(parameter.name, parameter.value))

    def _as_number(self, parameter: Parameter) -> Parameter:
        known = self._tunables.get(parameter.name)
        if known and known.kind is float and parameter.type_ == Parameter.Type.INTEGER:
            return Parameter(parameter.name, value=float(parameter.value))
        return parameter

    def _validate(self, parameters: list[Parameter]) -> SetParametersResult:
        try:
            changed = self._changed(parameters)
        except ValueError as error:
            return SetParametersResult(successful=False, reason=str(error))
        if not self._applies_late:
            self._take(changed, parameters)
        return SetParametersResult(successful=True)

    def _apply(self, parameters: list[Parameter]) -> None:
        self._take(self._changed(parameters), parameters)

    def _take(self, configs: dict, parameters: list[Parameter]) -> None:
        names = {one.name for one in parameters if one.name in self._tunables}
        self._configs = configs
        if names and self._on_change:
            self._on_change(names)

    def _changed(self, parameters: list[Parameter]) -> dict[type[Tunables], Tunables]:
        """Return the configurations these values would make, or raise ValueError."""
        values = {one.name: one.value for one in parameters}
        return {
            kind: config.with_values(**{n: values[n] for n in kind.tunables() if n in values})
            for kind, config in self._configs.items()
        }


def _any_type() -> ParameterDescriptor:
    """Describe a parameter whose type is checked by us, in words."""
    return ParameterDescriptor(dynamic_typing=True)


def descriptor(one: Tunable) -> ParameterDescriptor:
    """Describe a tunable to ROS."""
    unit = f' [{one.unit}]' if one.unit else ''
    described = ParameterDescriptor(
        name=one.name, description=one.meaning + unit, additional_constraints=one.bounds,
        read_only=one.fixed,
        dynamic_typing=True)  # a wrong type reaches our own check, which names the parameter
    if one.kind is int:
        step = 2 if one.odd else 1
        described.integer_range = [
            IntegerRange(from_value=int(one.low), to_value=int(one.high), step=step)]
    if one.kind is float:
        described.floating_point_range = [
            FloatingPointRange(from_value=float(one.low), to_value=float(one.high), step=0.0)]
    return described
