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
Edge-avoiding a-trous smoothing of planes: wide windows where one plane explains them.

Every pass fits a plane to five by five pixels, twice as far apart as in the pass before (the
a-trous wavelet of Dammertz, Sewtz, Hanika & Lensch 2010, with planes instead of values), so that
two passes reach 24 pixels for the price of one small window. A pixel counts as far as its
plane and that of the centre predict each other to within the noise. How many do is the test
whether one plane explains the window: where it does not, things are curved or cluttered, and
the plane stays as it was. Slopes gain most from distance, so they are taken over sooner than
values.

What counts as noise here is not only what differs from frame to frame. The ripples of a matcher,
the terraces of a sensor that rounds and stripes of its calibration stand still where the camera
does, and hide from residuals along its motion. They show in how wrongly planes some pixels apart
predict each other, and how much that changes a little further, which a round thing's own bending
does not: the lower quartile over the image, from where the scene is calmest.
"""

from __future__ import annotations

from graph_depth_refiner.core.kernels import Array, Kernels, Number

RADIUS = 2  # samples on either side
FADE = 1.2  # samples: standard deviation of the weight by distance
FIRST_SPACING = 4  # pixels between samples in the first pass: local fits reach 3 before
# Standard deviations beyond which a pixel is of another surface: of learned noise, and of a guess
# of it, which includes what hides and is the larger for that.
WIDTH, GUESS_WIDTH = 4.0, 2.6
AVERAGED = 12.0  # pixels that a plane is an average of before the first pass,
GAIN = 4.0  # and how many times more after each pass
APART = 8  # pixels between the samples of mismatches
ASIDE = 3  # samples down and across to that compared with: farther than ripples are alike
STANDING = 1.5  # of planes that err on their own the lower quartile is .67 standard deviations
RIDGE = 0.05  # squared spacings: keeps slopes as they were where few pixels count
# Share of the window that counts: none of the fit is taken below the first, all beyond the second.
# Of a plane with as much noise as was learned .86 count.
SLOPE_SHARE = (0.42, 0.62)
VALUE_SHARE = (0.62, 0.82)


def smooth_planes(k: Kernels, planes: Array, weight: Array, sigma: Array, independent: float,
                  hidden: Number, passes: int, single: bool) -> Array:
    """
    Return planes, 3 H W, smoothed wherever wide windows are planar to within the noise.

    weight, H W, is what a pixel counts for in fits, 0 leaves its plane as it is; sigma, H W, the
    standard deviation of the data, `independent` the share of its variance that differs from
    pixel to pixel and has been averaged already, `hidden` how many times larger noise that stands
    still may be. Single pixels, instead of blocks of them, need a pass more to reach as far.
    """
    averaged, spacing = AVERAGED, FIRST_SPACING
    width = GUESS_WIDTH + (hidden > 1) * (WIDTH - GUESS_WIDTH)
    for _ in range(passes + (single and passes > 0)):
        left = (1 - independent + independent / averaged) ** 0.5
        seen = STANDING * k.plane_mismatch(planes, weight, sigma, spacing)
        left *= k.smaller((seen / left).clip(1), hidden)
        planes = k.atrous_pass(planes, weight, width * left * sigma, spacing)
        averaged, spacing = GAIN * averaged, 2 * spacing
    return planes
