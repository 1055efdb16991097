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
"""Compile the kernels ahead of time, so that the first frame does not wait for them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
import fcntl
import os
from pathlib import Path
import threading
import time

from graph_depth_refiner.cli.main import add_config_arguments, config_from
from graph_depth_refiner.config import PRESETS, RefinerConfig
from graph_depth_refiner.core.downsampling import BIG
from graph_depth_refiner.core.jit import cache, compile_once
from graph_depth_refiner.messages import assembly, compressed, registration
from graph_depth_refiner.refiner import DepthRefiner

ALL = 'all'
COLUMNS = 400
# rows of a frame solved as it is, and of one solved at half its size
ROWS = (BIG // (2 * COLUMNS), BIG // COLUMNS + 1)
LOCK = 'compiling'  # beside the kernels
LOOK = 0.5  # seconds between two looks whether who asked for kernels is still there


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command warm-up."""
    add_config_arguments(parser, ALL)


def run(args: argparse.Namespace) -> int:
    """Load the kernels, compiled where they were not yet."""
    if os.environ.get(compile_once._COMPILING):
        _end_with(os.getppid())
        with _one_at_a_time():
            return _load(args)
    return _load(args)


def _end_with(parent: int) -> None:
    """End with the process that asked for the kernels; those stored until then stay."""
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Wait for others that compile: several nodes that start together need it done once."""
    with open(Path(os.environ[cache.VARIABLE]) / LOCK, 'w') as lock:
        with suppress(OSError):  # where files cannot be locked all of them compile
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _load(args: argparse.Namespace) -> int:
    start = time.perf_counter()
    for name in PRESETS if args.preset == ALL else (args.preset,):
        config = config_from(argparse.Namespace(preset=name, set=args.set))
        for rows in ROWS:
            DepthRefiner(config, args.device).warm_up((rows, COLUMNS))
    if args.preset == ALL:  # its kernels are the same whatever the preset
        irls = RefinerConfig().with_values(**{'solver.method': 'irls'})
        DepthRefiner(irls, args.device).warm_up((ROWS[0], COLUMNS))
    assembly.warm_up()
    registration.warm_up()
    _decode_a_pixel()
    print(f'kernels ready after {time.perf_counter() - start:.1f} s')
    return 0


def _decode_a_pixel() -> None:
    """Load the decoder of compressed depth."""
    header = compressed.DEPTH_HEADER.pack(0, 0, 0) + compressed.RVL_SIZE.pack(1, 1)
    zeros = bytes((0, 0, 0, 0x10))  # a run of one unknown pixel
    compressed.depth('16UC1; compressedDepth rvl', header + zeros, 1)
