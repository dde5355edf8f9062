"""Images that tell less: Gaussian blur.

Kim, Cho, Kim and Ok, "Robust Deep Learning from Crowds with Belief Propagation", section 4.1: radius 0 to 32. The paper
does not say how large its images are; we take 224 pixels, so that a radius means the same on images of any size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voxpop.errors import BadInput
from voxpop.simulate.checks import at_least

SIDE = 224  # pixels of the images that the radius is for


def blurred(images: NDArray[np.generic], radius: float, levels: int = 256) -> NDArray[np.float32]:
    """Images N,H,W or N,H,W,C with a blur of this radius (its standard deviation in images of 224 pixels).

    As in an image file, only so many grey levels are left: without that, a blur could be undone.
    """
    from scipy.ndimage import gaussian_filter

    pixels = np.asarray(images, dtype=np.float32)
    if pixels.ndim not in (3, 4):
        raise BadInput(f"images of shape {pixels.shape}; give N,H,W or N,H,W,C")
    at_least("radius", radius, 0)
    if not radius:
        return pixels
    sigma = radius / SIDE * np.array(pixels.shape[1:3])  # each side's
    soft = gaussian_filter(pixels, (0, *sigma, *([0] * (pixels.ndim - 3))), mode="nearest")
    low, high = float(pixels.min()), float(pixels.max())
    step = (high - low) / (at_least("levels", levels, 2) - 1) or 1.0
    rounded: NDArray[np.float32] = (np.rint((soft - low) / step) * step + low).astype(np.float32)
    return rounded
