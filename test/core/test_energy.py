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
"""The hand-written gradients against autograd in float64, and energies known by hand."""

from __future__ import annotations

import pytest
import torch

from graph_depth_refiner.config import preset
from graph_depth_refiner.core import energy_torch as energy
from graph_depth_refiner.core import patch_graph_torch as graph
from graph_depth_refiner.core.energy import REGULARISERS, SMOOTHING

ALPHA, LAMBDA = 5.5, 7.5


def random_problem(window: int, seed: int):
    """Return planes, graph, data and weights with holes, flat parts and exact data."""
    generator = torch.Generator().manual_seed(seed)
    shape = (7, 9)

    def random(*size):
        return torch.rand(size, generator=generator, dtype=torch.float64)
    z = 4 * random(3, *shape) - 2
    z[0, :4] = 0.5  # residuals and slope differences of exactly 0 ...
    z[1:, :4] = 0
    d = 4 * random(*shape) - 2
    d[:2] = 0.5  # ... and data met exactly
    m = random(*shape) * (random(*shape) > 0.3)
    config = preset('realtime', **{'graph.window': window, 'graph.neighbours': 5})
    return z, graph.build_graph(0.1 * random(*shape), config), d, m


@pytest.mark.parametrize('regulariser', REGULARISERS)
@pytest.mark.parametrize('window', [3, 5, 9])
@pytest.mark.parametrize('seed', range(3))
def test_gradient_is_that_of_autograd(regulariser, window, seed):
    """To 1e-6 relative; in float64 it is nearer to 1e-15."""
    z, w, d, m = random_problem(window, seed)
    tracked = z.clone().requires_grad_()
    energy.energy(tracked, w, d, m, LAMBDA, ALPHA, regulariser).backward()
    found = energy.gradient(z, w, graph.transpose(w), d, m, LAMBDA, ALPHA, regulariser)
    assert torch.isfinite(found).all()
    torch.testing.assert_close(
        found, tracked.grad, rtol=1e-6, atol=1e-6 * float(tracked.grad.abs().max()))


@pytest.mark.parametrize('regulariser', REGULARISERS)
def test_a_plane_costs_nothing(regulariser):
    """A plane with its own slope has residuals and slope differences 0, so gradient 0."""
    y, x = torch.meshgrid(torch.arange(6.), torch.arange(8.), indexing='ij')
    d = 3 + 0.25 * x - 0.5 * y
    z = torch.stack((d, torch.full_like(d, 0.25), torch.full_like(d, -0.5)))
    w = graph.build_graph(torch.zeros_like(d), preset('realtime'))
    terms = (d, torch.ones_like(d), LAMBDA, ALPHA, regulariser)
    assert energy.energy(z, w, *terms) == 0
    assert (energy.gradient(z, w, graph.transpose(w), *terms) == 0).all()


def test_energy_of_two_pixels_by_hand():
    """
    Pixels a and b side by side, both edges of weight 1, u = (2, 0) and (0, 0), d = 1 and 7.

    r_ab = 7 - 1 - 2 = 4 and r_ba = 1 - 7 - 0 = -6, each norm over one edge: 10.
    |u_b - u_a| = 2 in both directions: 4. Data 0 with weight 3 at a only: 3. The smoothing
    takes less than its size from each of the five norms.
    """
    z = torch.tensor([[[1., 7.]], [[2., 0.]], [[0., 0.]]], dtype=torch.float64)  # 3 1 2
    w = torch.zeros(8, 1, 2, dtype=torch.float64)
    w[4, 0, 0] = w[3, 0, 1] = 1  # (0, 1) from a, (0, -1) from b
    d, m = torch.zeros(1, 2, dtype=torch.float64), torch.tensor([[3., 0.]], dtype=torch.float64)
    for regulariser in REGULARISERS:
        found = float(energy.energy(z, w, d, m, LAMBDA, ALPHA, regulariser))
        exact = 3 + LAMBDA * (10 + ALPHA * 4)
        assert 0 < exact - found < SMOOTHING * (3 + LAMBDA * (2 + ALPHA * 4))


def test_norms_differ_as_the_supplement_says():
    """
    One pixel with two edges of weight 1, u = 0 there and (3, 4), (4, 3) at the neighbours.

    Slope terms from that pixel: planar 5 + 5, nltgv 7 + 7, neighbourhood sqrt(50); residuals
    d_j - d_i of 3 and 4: planar and neighbourhood 5, nltgv 7.
    """
    z = torch.tensor(
        [[[3., 0., 4.]], [[3., 0., 4.]], [[4., 0., 3.]]], dtype=torch.float64)  # 3 1 3
    w = torch.zeros(8, 1, 3, dtype=torch.float64)
    w[3, 0, 1] = w[4, 0, 1] = 1
    nothing = torch.zeros(1, 3, dtype=torch.float64)
    for regulariser, exact in (
            ('planar', 5 + 10 * ALPHA), ('nltgv', 7 + 14 * ALPHA),
            ('neighbourhood', 5 + 50 ** 0.5 * ALPHA)):
        found = float(energy.energy(z, w, nothing, nothing, 1.0, ALPHA, regulariser))
        assert found == pytest.approx(exact, abs=SMOOTHING * (2 + 4 * ALPHA))
