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
"""Configuration values of any kind are taken in their own type or refused in words."""

import math

from hostile import outcome
from hypothesis import example, given
from hypothesis import strategies as st
import pytest

from graph_depth_refiner.config import NodeConfig, preset, RefinerConfig

CLASSES = (RefinerConfig, NodeConfig)
TUNABLES = [(kind, one) for kind in CLASSES for one in kind.tunables().values()]
anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-10 ** 400, 10 ** 400),
    st.floats(), st.text(max_size=20), st.binary(max_size=8), st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2))


@given(st.sampled_from(TUNABLES), anything)
@example(TUNABLES[0], 10 ** 400)
@example(TUNABLES[2], -10 ** 400)
def test_values(of, value):
    kind, one = of
    config = outcome(kind().with_values, **{one.name: value})
    if config is not None:
        taken = config.value(one.name)
        assert type(taken) is one.kind
        assert taken == value
        if one.kind in (int, float):
            assert math.isfinite(taken) and one.low <= taken <= one.high


@given(st.sampled_from(TUNABLES), st.one_of(
    st.text(max_size=30), anything.map(str), st.integers(0, 5000).map(lambda n: '9' * n)))
@example(TUNABLES[2], '9' * 400)
def test_settings_of_the_command_line(of, text):
    kind, one = of
    config = outcome(kind().with_settings, [f'{one.name}={text}'])
    if config is not None:
        assert type(config.value(one.name)) is one.kind


@given(st.text(max_size=30), st.text(max_size=10))
def test_unknown_names_and_settings_without_a_value(name, value):
    known = RefinerConfig.tunables()
    for call, argument in ((RefinerConfig().with_settings, [name]), (preset, name)):
        outcome(call, argument)
    if name not in known:
        with pytest.raises(ValueError, match='expected'):
            RefinerConfig().with_settings([f'{name}={value}'])
