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
"""Tunables refuse what they must, in one sentence with name, bounds and what came."""

from dataclasses import dataclass, FrozenInstanceError

import pytest

from graph_depth_refiner.cli.tables import sets
from graph_depth_refiner.config import (
    Group,
    preset,
    PRESETS,
    RefinerConfig,
    tunable,
    Tunables,
)


@dataclass(frozen=True)
class Sample(Tunables):
    """One tunable of each kind."""

    switch: bool = tunable(False, 'A switch')
    count: int = tunable(3, 'A count', low=1, high=9, odd=True)
    share: float = tunable(0.5, 'A share', unit='m', low=0.0, high=1.0)
    kind: str = tunable('a', 'A kind', choices=('a', 'b'))
    name: str = tunable('', 'A name', fixed=True)


@dataclass(frozen=True)
class Grouped(Group):
    """One tunable in a group."""

    group = 'sample'
    count: int = tunable(3, 'A count', low=1, high=9, odd=True)


@dataclass(frozen=True)
class Nested(Tunables):
    """One tunable in a group and one in none."""

    sole: float = tunable(1.0, 'A number', low=0.0, high=9.0)
    sample: Grouped = Grouped()


REFUSED = {
    'count': [
        (0, 'count: expected odd integer from 1 to 9, got 0'),
        (4, 'count: expected odd integer from 1 to 9, got 4'),
        (11, 'count: expected odd integer from 1 to 9, got 11'),
        (3.0, 'count: expected odd integer from 1 to 9, got 3.0 (float)'),
        (True, 'count: expected odd integer from 1 to 9, got True (bool)'),
        ('3', "count: expected odd integer from 1 to 9, got '3' (str)"),
        (None, 'count: expected odd integer from 1 to 9, got None (NoneType)'),
    ],
    'share': [
        (-0.1, 'share: expected number from 0 to 1, got -0.1'),
        (1.1, 'share: expected number from 0 to 1, got 1.1'),
        (float('nan'), 'share: expected number from 0 to 1, got nan'),
        (float('inf'), 'share: expected number from 0 to 1, got inf'),
        (True, 'share: expected number from 0 to 1, got True (bool)'),
    ],
    'switch': [(1, 'switch: expected true or false, got 1 (int)')],
    'kind': [('c', "kind: expected one of a, b, got 'c'")],
    'name': [(b'x', "name: expected text, got b'x' (bytes)")],
}


@pytest.mark.parametrize(
    'name, value, text', [(name, *case) for name, cases in REFUSED.items() for case in cases])
def test_refuses_with_name_bounds_and_what_came(name, value, text):
    with pytest.raises(ValueError) as error:
        Sample(**{name: value})
    assert str(error.value) == text
    with pytest.raises(ValueError):
        Sample().with_values(**{name: value})


def test_a_group_is_changed_by_dotted_names_or_as_in_yaml():
    expected = Nested(sample=Grouped(count=5), sole=2.0)
    assert Nested().with_values(**{'sample.count': 5, 'sole': 2}) == expected
    assert Nested().with_values(sample={'count': 5}, sole=2) == expected
    assert Nested().with_settings(['sample.count=5', 'sole=2']) == expected
    assert Nested().with_values(sample={'count': 5}).value('sample.count') == 5
    assert Nested().with_values(**{'sample.count': 5}).with_values(sole=2) == expected


@pytest.mark.parametrize('values, text', [
    ({'sample.count': 4}, 'sample.count: expected odd integer from 1 to 9, got 4'),
    ({'sample': {'count': 4}}, 'sample.count: expected odd integer from 1 to 9, got 4'),
    ({'sample': {'coutn': 5}}, 'sample.coutn: unknown name, expected one of sole, sample.count'),
    ({'sample': 5}, 'sample: unknown name, expected one of sole, sample.count'),
    ({'count': 5}, 'count: unknown name, expected one of sole, sample.count'),
    ({'sole': {'count': 5}}, "sole: expected number from 0 to 9, got {'count': 5} (dict)"),
])
def test_a_group_is_refused_by_its_dotted_name(values, text):
    with pytest.raises(ValueError) as error:
        Nested().with_values(**values)
    assert str(error.value) == text


def test_a_group_alone_is_checked_too():
    with pytest.raises(ValueError, match='^sample.count: expected'):
        Grouped(count=4)


def test_takes_a_whole_number_for_a_number():
    share = Sample(share=1).share
    assert share == 1.0
    assert type(share) is float


def test_unknown_name_is_refused():
    with pytest.raises(ValueError, match='^coutn: unknown name, expected one of switch, count'):
        Sample().with_values(coutn=5)
    with pytest.raises(ValueError, match='^coutn: unknown name'):
        Sample().with_settings(['coutn=5'])


def test_is_frozen():
    with pytest.raises(FrozenInstanceError):
        Sample().count = 5


def test_settings_are_read_in_their_own_type():
    got = Sample().with_settings(['switch=True', 'count=5', 'share=1e-1', 'kind=b', 'name=x=y'])
    assert got == Sample(switch=True, count=5, share=0.1, kind='b', name='x=y')


@pytest.mark.parametrize('setting, text', [
    ('count', "setting: expected name=value, got 'count'"),
    ('count=4', "count: expected odd integer from 1 to 9, got '4'"),
    ('count=3.0', "count: expected odd integer from 1 to 9, got '3.0'"),
    ('count=', "count: expected odd integer from 1 to 9, got ''"),
    ('share=nan', "share: expected number from 0 to 1, got 'nan'"),
    ('share=much', "share: expected number from 0 to 1, got 'much'"),
    ('switch=1', "switch: expected true or false, got '1'"),
    ('kind=c', "kind: expected one of a, b, got 'c'"),
])
def test_settings_are_refused(setting, text):
    with pytest.raises(ValueError) as error:
        Sample().with_settings([setting])
    assert str(error.value) == text


@pytest.mark.parametrize('name', PRESETS)
def test_presets_are_within_bounds(name):
    got = preset(name)
    assert all(got.value(key) == value for key, value in PRESETS[name].items())


def test_unknown_preset_is_refused():
    with pytest.raises(ValueError, match="^preset: expected one of .*, got 'fast'$"):
        preset('fast')


@pytest.mark.parametrize('kind', sets())
def test_every_tunable_is_complete(kind):
    for name, one in kind.tunables().items():
        assert one.name == name
        assert kind().value(name) == one.default
        assert one.meaning
        assert one.kind in (bool, int, float, str)
        if one.kind in (int, float):
            assert one.low <= one.default <= one.high
        if one.odd:
            assert one.low % 2 == 1  # the range of the ROS parameter counts in twos from it


def test_names_are_unique_over_all_sets():
    names = [name for kind in sets() for name in kind.tunables()]
    assert len(names) == len(set(names))
    assert RefinerConfig in sets()


def test_values_that_do_not_suit_each_other_are_refused():
    with pytest.raises(ValueError, match=r'depth.min: expected less than depth.max \(5\), got 10'):
        RefinerConfig().with_values(**{'depth.min': 10.0, 'depth.max': 5.0})
    with pytest.raises(ValueError, match='solver.scale: expected 0, 1, 2 or 4, got 3'):
        RefinerConfig().with_values(**{'solver.scale': 3})
