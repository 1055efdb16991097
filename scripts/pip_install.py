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
"""Run pip in a fresh environment: progress while it works, one sentence when it fails."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
from pathlib import Path
import re
import site
import subprocess
import sys
import time
import urllib.request

# The one pip that sets everything up, also where Python comes without ensurepip.
PIP = 'pip-26.3-py3-none-any.whl'
PIP_SHA256 = 'f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13'

NUMBA = ('numba', 'llvmlite')  # a version of theirs knows some versions of NumPy

REASONS = {
    r'No space left on device|Errno 28': 'disk: it is full, free some space and run it again',
    r'Disk quota exceeded': 'disk: the quota is used up, free some space and run it again',
    r'name resolution|NewConnectionError|Network is unreachable|ConnectTimeout|ProxyError'
    r'|Connection refused|ConnectionResetError|Read timed out|Max retries exceeded'
    r'|URLError|urlopen error|Remote end closed':
        'network: the package index cannot be reached, connect and run it again',
    r'Permission denied|Read-only file system':
        'disk: no permission to write into the clone or the cache',
}


class Failure(Exception):
    """A set-up that cannot go on, said in one sentence."""


def explain(words: str) -> str:
    """Return the reason that stands in a program's words, or nothing."""
    return next((why for pattern, why in REASONS.items() if re.search(pattern, words)), '')


def kept_pins(constraints: list[str]) -> list[str]:
    """Return the pins of what the surrounding Python lacks, and its own NumPy and torch."""
    own = [f'{name}=={_installed(name)}' for name in ('numpy', 'torch') if _installed(name)]
    free = NUMBA if _installed('numpy') else ()  # one that goes with that NumPy
    names = {line: re.split('[=;]', line)[0] for line in constraints}
    return [line for line in constraints
            if not _kept(names[line]) and names[line] not in free] + own


def _kept(name: str) -> bool:
    """Tell whether the surrounding Python has something that pip need not replace."""
    version = _installed(name)
    return bool(version) and (name, version.partition('.')[0]) != ('pytest', '6')  # xdist wants 7


class Pip:
    """The pip of one environment."""

    def __init__(self, venv: Path, temporary: Path, log: Path) -> None:
        """Name the folders; nothing is made yet."""
        self.python = venv / 'bin' / 'python'
        self._venv = venv
        self._temporary = temporary
        self._log = log

    def create(self, system_packages: bool) -> None:
        """Make the environment and put the pinned pip into it."""
        self._temporary.mkdir(parents=True, exist_ok=True)
        self._log.write_text('')
        base = getattr(sys, '_base_executable', sys.executable)
        make = [base, '-m', 'venv', *['--system-site-packages'] * system_packages, self._venv]
        if importlib.util.find_spec('ensurepip'):
            self._run(make)
            self.install('pip==' + PIP.split('-')[1])
        else:
            self._run([*make, '--without-pip'])
            wheel = self._fetch_pip()
            self._run([self.python, wheel / 'pip', 'install', '--no-index', '--no-deps', wheel])
        if system_packages and sys.prefix != sys.base_prefix:
            packages = next((self._venv / 'lib').glob('python3*')) / 'site-packages'
            (packages / 'active_environment.pth').write_text('\n'.join(site.getsitepackages()))

    def install(self, *arguments: str | Path) -> None:
        """Install packages."""
        self._run([self.python, '-m', 'pip', 'install', *self._raw_progress(), *arguments])

    def download(self, folder: Path, *arguments: str | Path) -> None:
        """Download packages without installing them."""
        self._run([
            self.python, '-m', 'pip', 'download', *self._raw_progress(), '-d', folder, *arguments])

    def install_missing(self, requirements: Path, constraints: Path) -> None:
        """Install what the surrounding Python lacks; what it has keeps its version."""
        missing = []
        for line in requirements.read_text().splitlines():
            requirement, _, module = line.partition('  # ')
            if module and not requirement.startswith('ros-') and not self._has(module):
                missing.append(requirement)
        kept = self._temporary / 'constraints.txt'
        kept.write_text('\n'.join(kept_pins(constraints.read_text().splitlines())))
        if missing:
            self.install(*missing, '-c', kept)

    def _has(self, module: str) -> bool:
        return importlib.util.find_spec(module) is not None

    def _raw_progress(self) -> list[str]:
        version = subprocess.run(
            [self.python, '-m', 'pip', '--version'], capture_output=True, text=True).stdout
        found = re.match(r'pip (\d+)', version)
        return ['--progress-bar', 'raw'] if found and int(found[1]) >= 25 else []

    def _fetch_pip(self) -> Path:
        """Take the pinned pip from the index by hand."""
        index = os.environ.get('PIP_INDEX_URL', 'https://pypi.org/simple').rstrip('/')
        try:
            with urllib.request.urlopen(f'{index}/pip/', timeout=60) as page:
                link = re.search(rf'href="([^"#]*/{re.escape(PIP)})', page.read().decode())
            if not link:
                raise Failure(f'{index}: expected {PIP}, got a list without it')
            with urllib.request.urlopen(link[1], timeout=60) as answer:
                content = answer.read()
        except OSError as error:
            raise Failure(explain('URLError')) from error
        if hashlib.sha256(content).hexdigest() != PIP_SHA256:
            raise Failure(f'{PIP}: expected the SHA-256 {PIP_SHA256}, got another file')
        wheel = self._temporary / PIP
        wheel.write_bytes(content)
        return wheel

    def _run(self, command: list) -> None:
        environment = dict(
            os.environ, TMPDIR=str(self._temporary), PIP_DISABLE_PIP_VERSION_CHECK='1',
            PYTHONUNBUFFERED='1', PIP_NO_INPUT='1', PIP_RETRIES='3')
        environment.pop('PIP_USER', None)
        progress = _Progress()
        words = []
        with subprocess.Popen(
                [str(part) for part in command], env=environment, text=True, errors='replace',
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, close_fds=False) as process:
            try:
                for line in process.stdout:
                    if not line.startswith('Progress '):
                        words.append(line)
                    progress.show(line)
            except KeyboardInterrupt:
                process.terminate()
                raise
            finally:
                progress.done()
        with self._log.open('a') as log:
            log.writelines(words)
        if process.returncode:
            errors = [line.strip() for line in words if line.startswith('ERROR')]
            raise Failure(
                explain(''.join(words)) or (errors or words or ['pip failed'])[-1].strip())


class _Progress:
    """Say what pip does: on one line of a terminal, else a line every few seconds."""

    def __init__(self) -> None:
        self._what = ''
        self._terminal = sys.stderr.isatty()
        self._next = time.monotonic() + 2.0

    def show(self, line: str) -> None:
        share = re.match(r'Progress (\d+) of (\d+)', line)
        action = re.match(r'\s*(Downloading|Collecting|Installing collected|Building) ?(.*)', line)
        if action:
            self._what = ' '.join(action.groups()).strip()[:90]
            if action[1].startswith('Installing'):
                self._what = f'Installing {line.count(",") + 1} packages'
                self._next = 0.0
        text = self._what
        if share and int(share[2]):
            text += f' {100 * int(share[1]) // int(share[2])} %'
        if text and (self._terminal or time.monotonic() > self._next):
            self._next = time.monotonic() + 5.0
            print(f'\r\033[K   {text}' if self._terminal else f'   {text}',
                  end='' if self._terminal else '\n', file=sys.stderr, flush=True)

    def done(self) -> None:
        if self._terminal and self._what:
            print('\r\033[K', end='', file=sys.stderr, flush=True)


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ''
