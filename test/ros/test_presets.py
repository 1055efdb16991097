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
"""The files of config/ say only what the node understands."""

from dataclasses import fields
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from graph_depth_refiner.config import NodeConfig, preset

CONFIG = Path(__file__).parents[2] / 'config'
SHOWN = {'image', 'depth', 'depth_refined/image', 'normals/image_color', 'points'}


def settings(path):
    """Return the parameters of a file, and what they make of the node and the refinement."""
    content = yaml.safe_load(path.read_text())
    assert list(content) == ['/**']  # any node name, in any namespace
    values = content['/**']['ros__parameters']
    mine = {one.name for one in fields(NodeConfig)}
    config = NodeConfig().with_values(**{n: v for n, v in values.items() if n in mine})
    return values, config, preset(
        config.preset, **{n: v for n, v in values.items() if n not in mine})


@pytest.mark.parametrize('path', sorted(CONFIG.glob('*.yaml')), ids=lambda path: path.stem)
def test_camera_preset(path):
    values, config, refiner = settings(path)
    assert 'sensor' in values['noise']
    assert (config.preset == 'stereo') == (refiner.noise.sensor == 'stereo')
    for name, value in values.items():
        if name.endswith('_topic'):
            assert not value.startswith('/')  # relative, for several cameras in one system
    assert config.depth_topic != NodeConfig().depth_topic or path.stem in (
        'isaac_sim', 'stereo_image_proc')


def test_disparity_is_refined_as_stereo():
    _, config, refiner = settings(CONFIG / 'stereo_image_proc.yaml')
    assert config.input_kind == 'disparity'
    assert refiner == preset('stereo', **{'noise.sensor': 'stereo'})


def test_rviz_shows_what_there_is():
    layout = yaml.safe_load((CONFIG / 'refiner.rviz').read_text())
    shown = {
        display['Topic']['Value'] for display in layout['Visualization Manager']['Displays']
        if 'Topic' in display}
    assert shown == SHOWN
    # a wider median makes RViz round the range of float images to whole metres
    windows = {display.get('Median window', 1) for display in
               layout['Visualization Manager']['Displays']}
    assert windows == {1}


def panels(tree):
    """Return the panels of a Foxglove layout, from top left to bottom right."""
    if isinstance(tree, str):
        return [tree]
    return panels(tree['first']) + panels(tree['second'])


def test_foxglove_shows_what_there_is():
    layout = json.loads((CONFIG / 'foxglove.json').read_text())
    panel = layout['configById']
    assert sorted(panels(layout['layout'])) == sorted(panel)
    pictures = [one['imageMode']['imageTopic'] for one in panel.values() if 'imageMode' in one]
    assert {name.removeprefix('/') for name in [*pictures, *panel['3D!points']['topics']]} == SHOWN


@pytest.mark.parametrize('path', sorted(CONFIG.glob('*.xml')), ids=lambda path: path.stem)
def test_dds_profile_is_well_formed(path):
    assert len(list(ElementTree.parse(path).getroot())) > 0
