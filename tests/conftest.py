"""What all tests begin with.

One thread: the problems of the tests are small, and threads that wait for each other cost more than they give. Ctrl-C
means what it does at a terminal, also where a shell that started the tests in the background has it ignored.
"""

from __future__ import annotations

import signal

import torch

torch.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler)
