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
"""How Sphinx builds these pages: scripts/docs, or rosdoc2."""

import re

project = 'graph_depth_refiner'
author = 'graph_depth_refiner contributors'
copyright = f'2026, {author}'  # noqa: A001
release = '0.2.0'

extensions = ['myst_parser']
myst_heading_anchors = 3  # links such as page.md#a-heading
exclude_patterns = ['requirements.txt']
html_theme = 'alabaster'
html_theme_options = {'page_width': '1100px', 'description': 'Depth refinement for ROS 2'}


def link_files(app, docname, source):
    """Let links that leave docs/ lead to copies of the files; on GitHub they are the files."""
    source[0] = re.sub(r'\]\(\.\./', '](path:../', source[0])


def setup(app):
    """Tell Sphinx."""
    app.connect('source-read', link_files)
