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
SIMD for numba kernels: runs of neighbouring float32 in the registers of the processor.

The loops over edges need a handful of sums per pixel; kept in memory they cost more than
the arithmetic. An `F32x16` holds LANES of them in registers. It is LLVM's own vector type, which
LLVM turns into whatever the processor has, so nothing here depends on one.
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

LANES = 16
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
# as FAST of options.py: numbers that are not finite must be noticed
_FLAGS = ('contract', 'reassoc', 'arcp', 'afn', 'nsz')


class F32x16(types.Type):
    """The type of LANES neighbouring float32."""

    def __init__(self) -> None:
        """Name it."""
        super().__init__(name=f'F32x{LANES}')


run = F32x16()


@register_model(F32x16)
class F32x16Model(models.PrimitiveModel):
    """A run is one vector register, or a few."""

    def __init__(self, dmm, fe_type) -> None:
        """Choose LLVM's vector type."""
        super().__init__(dmm, fe_type, _VECTOR)


def _pointer(context, builder, array_type, array, index):
    """Return the address of a run in a row of float32."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


@intrinsic
def load_run(typing, row, index):
    """Read the run that begins at the index of a contiguous row; it may be unaligned."""
    def generate(context, builder, signature, arguments):
        place = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(place, align=4)
    return run(row, types.uintp), generate


@intrinsic
def load_bytes(typing, row, index):
    """Read a run of a contiguous row of uint8."""
    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(
            builder.gep(data, [arguments[1]]), ir.VectorType(ir.IntType(8), LANES).as_pointer())
        return builder.uitofp(builder.load(place, align=1), _VECTOR)
    return run(row, types.uintp), generate


def _every_second(first: int):
    """Return a function that gives every second value of two runs after each other."""
    @intrinsic
    def taken(typing, a, b):
        def generate(context, builder, signature, arguments):
            order = ir.Constant(ir.VectorType(ir.IntType(32), LANES),
                                [first + 2 * lane for lane in range(LANES)])
            return builder.shuffle_vector(*arguments, order)
        return run(run, run), generate
    return taken


even_run, odd_run = (_every_second(first) for first in (0, 1))


@intrinsic
def store_run(typing, row, index, values):
    """Write a run."""
    def generate(context, builder, signature, arguments):
        place = _pointer(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], place, align=4)
        return context.get_dummy_value()
    return types.void(row, types.uintp, run), generate


@intrinsic
def store_bytes(typing, row, index, values):
    """Write a run of whole numbers from 0 to 255 to a contiguous row of uint8."""
    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        whole = builder.fptosi(arguments[2], ir.VectorType(ir.IntType(32), LANES))
        whole = builder.trunc(whole, ir.VectorType(ir.IntType(8), LANES))
        place = builder.bitcast(builder.gep(data, [arguments[1]]), whole.type.as_pointer())
        builder.store(whole, place, align=1)
        return context.get_dummy_value()
    return types.void(row, types.uintp, run), generate


@intrinsic
def store_triples(typing, row, index, a, b, c):
    """Write three runs so that values of one place lie beside each other."""
    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        integers = ir.IntType(32)

        def mixed(one, other, order):
            return builder.shuffle_vector(one, other, ir.Constant(
                ir.VectorType(integers, len(order)), order))
        both = mixed(arguments[2], arguments[3], list(range(2 * LANES)))
        third = mixed(arguments[4], arguments[4], list(range(2 * LANES)))
        values = mixed(both, third, [
            part * LANES + lane for lane in range(LANES) for part in range(3)])
        place = builder.bitcast(
            builder.gep(data, [arguments[1]]), values.type.as_pointer())
        builder.store(values, place, align=4)
        return context.get_dummy_value()
    return types.void(row, types.uintp, run, run, run), generate


@intrinsic
def spread_run(typing, value):
    """Return a run of one value."""
    def generate(context, builder, signature, arguments):
        one = builder.insert_element(
            ir.Constant(_VECTOR, ir.Undefined), arguments[0], ir.Constant(ir.IntType(32), 0))
        order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), order)
    return run(types.float32), generate


@intrinsic
def counting_run(typing):
    """Return 0, 1, 2 and so on."""
    def generate(context, builder, signature, arguments):
        return ir.Constant(_VECTOR, [float(lane) for lane in range(LANES)])
    return run(), generate


@intrinsic
def inside_run(typing, values, first, size):
    """Clear the values whose position, counted from `first`, is not from 0 to size - 1."""
    def generate(context, builder, signature, arguments):
        integers = ir.VectorType(ir.IntType(32), LANES)
        order = ir.Constant(integers, [0] * LANES)

        def everywhere(number):
            one = builder.insert_element(
                ir.Constant(integers, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(one, ir.Constant(integers, ir.Undefined), order)
        position = builder.add(
            everywhere(arguments[1]), ir.Constant(integers, list(range(LANES))))
        there = builder.icmp_unsigned('<', position, everywhere(arguments[2]))
        return builder.select(there, arguments[0], ir.Constant(_VECTOR, [0.0] * LANES))
    return run(run, types.int32, types.int32), generate


def _root(builder, values):
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), f'llvm.sqrt.v{LANES}f32')
    return builder.call(function, [values], fastmath=_FLAGS)


@intrinsic
def inverse_root(typing, values):
    """Return 1 / sqrt, by the processor's estimate if it has one."""
    def generate(context, builder, signature, arguments):
        ones = ir.Constant(_VECTOR, [1.0] * LANES)
        return builder.fdiv(ones, _root(builder, arguments[0]), flags=_FLAGS)
    return run(run), generate


@intrinsic
def root_run(typing, values):
    """Return the square roots."""
    def generate(context, builder, signature, arguments):
        return _root(builder, arguments[0])
    return run(run), generate


@intrinsic
def inverse_run(typing, values):
    """Return 1 / values."""
    def generate(context, builder, signature, arguments):
        return builder.fdiv(ir.Constant(_VECTOR, [1.0] * LANES), *arguments, flags=_FLAGS)
    return run(run), generate


def _arithmetic(symbol, name: str) -> None:
    """Teach numba an operator between runs."""
    @intrinsic
    def combine(typing, a, b):
        def generate(context, builder, signature, arguments):
            return getattr(builder, name)(*arguments, flags=_FLAGS)
        return run(run, run), generate

    @overload(symbol)
    def combined(a, b):
        if isinstance(a, F32x16) and isinstance(b, F32x16):
            return lambda a, b: combine(a, b)
        return None


for _symbol, _name in ((operator.add, 'fadd'), (operator.sub, 'fsub'), (operator.mul, 'fmul')):
    _arithmetic(_symbol, _name)


@intrinsic
def sum_run(typing, values):
    """Return the sum of a run, always in the same order."""
    def generate(context, builder, signature, arguments):
        values = arguments[0]
        width = LANES
        while width > 1:
            width //= 2
            halves = [
                builder.shuffle_vector(
                    values, ir.Constant(values.type, ir.Undefined),
                    ir.Constant(ir.VectorType(ir.IntType(32), width),
                                list(range(start, start + width))))
                for start in (0, width)]
            values = builder.fadd(*halves)
        return builder.extract_element(values, ir.Constant(ir.IntType(32), 0))
    return types.float32(run), generate


def _comparison(symbol: str):
    """Return a function that gives 1 where two runs compare so, else 0."""
    @intrinsic
    def compare(typing, a, b):
        def generate(context, builder, signature, arguments):
            there = builder.fcmp_ordered(symbol, *arguments)
            return builder.select(
                there, ir.Constant(_VECTOR, [1.0] * LANES), ir.Constant(_VECTOR, [0.0] * LANES))
        return run(run, run), generate
    return compare


less_run, at_most_run, equal_run = (_comparison(symbol) for symbol in ('<', '<=', '=='))


@intrinsic
def choose_run(typing, flags, a, b):
    """Return a where the flag is not 0, else b."""
    def generate(context, builder, signature, arguments):
        flags, a, b = arguments
        return builder.select(
            builder.fcmp_ordered('!=', flags, ir.Constant(_VECTOR, [0.0] * LANES)), a, b)
    return run(run, run, run), generate


@intrinsic
def abs_run(typing, values):
    """Return the values without their sign."""
    def generate(context, builder, signature, arguments):
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), f'llvm.fabs.v{LANES}f32')
        return builder.call(function, arguments)
    return run(run), generate


def _extreme(symbol: str):
    """Return a function that gives the value of each pair of two runs that compares so."""
    @intrinsic
    def chosen(typing, a, b):
        def generate(context, builder, signature, arguments):
            return builder.select(builder.fcmp_ordered(symbol, *arguments), *arguments)
        return run(run, run), generate
    return chosen


least_run, most_run = (_extreme(symbol) for symbol in '<>')


@intrinsic
def fading_run(typing, exponents, faint):
    """Return exp(-t) for t >= 0, and 0 where t reaches `faint`, which is below 87."""
    def generate(context, builder, signature, arguments):
        integers = ir.VectorType(ir.IntType(32), LANES)

        def constant(value):
            return ir.Constant(_VECTOR, [value] * LANES)

        def times_plus(a, b, c):
            return builder.fadd(builder.fmul(a, b, flags=_FLAGS), c, flags=_FLAGS)
        counts = builder.fcmp_ordered('<', *arguments)
        t = builder.select(counts, *arguments)
        # exp(-t) = 2^-k exp(f) with f = k ln 2 - t, at most half of ln 2
        k = builder.fptosi(times_plus(t, constant(1.44269504), constant(0.5)), integers)
        whole = builder.sitofp(k, _VECTOR)
        f = builder.fsub(builder.fmul(whole, constant(0.693359375)), t)
        f = times_plus(whole, constant(-2.12194440e-4), f)
        series = constant(1 / 720)
        for divisor in (120, 24, 6, 2, 1, 1):
            series = times_plus(series, f, constant(1 / divisor))
        power = builder.shl(
            builder.sub(ir.Constant(integers, [127] * LANES), k),
            ir.Constant(integers, [23] * LANES))
        value = builder.fmul(series, builder.bitcast(power, _VECTOR))
        return builder.select(counts, value, constant(0.0))
    return run(run, run), generate
