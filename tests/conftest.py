"""One thread: the problems of the tests are small, and threads that wait for each other cost more than they give."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
