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
"""
Compile Triton kernels ahead of time, for GPUs that need not be there, and look for spills.

Run with `python -m` and a JSON list of {kernel, types, constants, options, targets} on the
standard input; what each came to is written as a JSON list. It is a process of its own, as
Triton decides when it is imported whether it interprets or compiles.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
import json
import multiprocessing
import os
from pathlib import Path
import re
import subprocess
import sys
import tempfile
from typing import Any

import torch

from graph_depth_refiner.core.triton_launch import Launch

TARGETS = (75, 80, 87, 89, 90, 100, 110, 120)  # compute capabilities, times ten
_TYPES = {
    torch.float32: 'fp32', torch.float64: 'fp64', torch.int32: 'i32', torch.int64: 'i64',
    torch.uint8: 'u8', torch.bool: 'i1'}
_OPTIONS = ('num_warps',)


def request(launch: Launch) -> dict[str, Any]:
    """Return what is to be compiled for a launch: by names, as another process does it."""
    function = launch.kernel.fn
    names = launch.kernel.arg_names
    constants = {name: value for name, value in launch.constants.items() if name in names}
    options = {name: value for name, value in launch.constants.items() if name in _OPTIONS}
    return {'kernel': f'{function.__module__}:{function.__name__}',
            'types': [_type(one) for one in launch.arguments],
            'constants': constants, 'options': options}


def _type(argument: Any) -> str:
    if isinstance(argument, torch.Tensor):
        return '*' + _TYPES[argument.dtype]
    return 'fp32' if isinstance(argument, float) else 'i32'


def distinct(launches: list[Launch]) -> list[dict[str, Any]]:
    """Return the different kernels among some launches."""
    found = {json.dumps(one, sort_keys=True): one for one in map(request, launches)}
    return [found[key] for key in sorted(found)]


def compile_all(requests: list[dict[str, Any]], targets: tuple[int, ...] = TARGETS
                ) -> list[dict[str, Any]]:
    """Return for every kernel and target its registers, stack and local memory, in bytes."""
    environment = {name: value for name, value in os.environ.items() if name != 'TRITON_INTERPRET'}
    done = subprocess.run(
        [sys.executable, '-m', __name__], env=environment, text=True, capture_output=True,
        input=json.dumps([{**one, 'targets': targets} for one in requests]))
    if done.returncode:
        raise RuntimeError(f'kernels: expected to compile, got {done.stderr[-2000:]}')
    return json.loads(done.stdout)


def spills(compiled: list[dict[str, Any]]) -> int:
    """Return how many of the compiled kernels use the stack or local memory."""
    return sum(one['stack'] > 0 or one['local'] > 0 for one in compiled)


def _compiled(one: dict[str, Any]) -> list[dict[str, Any]]:
    """Compile one kernel for all its targets."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    module, _, name = one['kernel'].partition(':')
    kernel = getattr(import_module(module), name)
    types = iter(one['types'])
    signature = {argument: 'constexpr' if argument in one['constants'] else next(types)
                 for argument in kernel.arg_names}
    found = []
    for target in one['targets']:
        source = ASTSource(kernel, signature, constexprs=one['constants'])
        binary = triton.compile(source, target=GPUTarget('cuda', target, 32),
                                options=one['options'])
        found.append({'kernel': one['kernel'], 'constants': one['constants'], 'target': target,
                      **_resources(binary.asm['cubin'], Path(triton.__file__).parent)})
    return found


def _resources(cubin: bytes, triton: Path) -> dict[str, int]:
    """Return what a compiled kernel uses, as the tool of the Triton wheel tells."""
    with tempfile.NamedTemporaryFile(suffix='.cubin') as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run(
            [triton / 'backends' / 'nvidia' / 'bin' / 'cuobjdump', '--dump-resource-usage',
             file.name], capture_output=True, text=True, check=True).stdout
    registers, stack, local = re.search(
        r'REG:(\d+) STACK:(\d+).* LOCAL:(\d+)', text).groups()
    return {'registers': int(registers), 'stack': int(stack), 'local': int(local)}


def main() -> None:
    """Compile what the standard input asks for, on all cores."""
    requests = json.load(sys.stdin)
    context = multiprocessing.get_context('fork')
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        found = list(pool.map(_compiled, requests))
    json.dump([one for some in found for one in some], sys.stdout)


if __name__ == '__main__':
    main()
