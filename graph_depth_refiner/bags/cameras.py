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
"""The files of config/: topics and settings of cameras, for the node and for recordings."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from graph_depth_refiner.config import NodeConfig, preset, RefinerConfig

SUFFIX = '.yaml'
PACKAGE = 'graph_depth_refiner'


@cache
def config_folder() -> Path | None:
    """Return the folder of the presets: of an installation, or of the source tree."""
    for parent in Path(__file__).resolve().parents:
        for folder in (parent / 'share' / PACKAGE / 'config', parent / 'config'):
            if list(folder.glob(f'*{SUFFIX}')):
                return folder
    return None


def camera_names() -> list[str]:
    """Return the names of the presets."""
    folder = config_folder()
    return sorted(path.stem for path in folder.glob(f'*{SUFFIX}')) if folder else []


def read_camera(name: str) -> dict[str, Any]:
    """Return the parameters of a preset, or of a YAML file of parameters, by name."""
    path = Path(name) if name.endswith(SUFFIX) else (config_folder() or Path()) / (name + SUFFIX)
    if not path.is_file():
        raise ValueError(
            f'camera: expected one of {", ".join(camera_names())} or a {SUFFIX} file, '
            f'got {name!r}')
    try:
        content = YAML(typ='safe').load(path)
        values = content['/**']['ros__parameters']
        return {str(key): value for key, value in values.items()}
    except (YAMLError, KeyError, TypeError, AttributeError, ValueError):
        raise ValueError(
            f'{path}: expected parameters below /**: ros__parameters:, got something else'
        ) from None


def configs(values: dict[str, Any], inputs: list[str], name: str | None,
            settings: list[str]) -> tuple[NodeConfig, RefinerConfig]:
    """
    Return what parameters, as a preset of a camera has them, make of node and refinement.

    `inputs` and `settings` are texts `name=value` that go before them, and so does the preset
    of the refinement where its name is given.
    """
    known = {one.partition('.')[0] for one in NodeConfig.tunables()}
    mine = {key: value for key, value in values.items() if key.partition('.')[0] in known}
    node = NodeConfig().with_values(**mine).with_settings(inputs)
    rest = {key: value for key, value in values.items() if key not in mine}
    return node, preset(name or node.preset, **rest).with_settings(settings)
