"""The papers' experiments on data at hand: measured, drawn beside the paper's numbers, and judged.

An experiment is one file with an ``EXPERIMENT`` (see ``experiment``) and its name in ``experiments``. It says what its
parts are: each a figure or a table of cases x methods x seeds, a function that measures one of them, what the paper
printed, and which claims the numbers must bear out. Everything else is here once: running what is missing in
processes (``running``), keeping what is finished (``store``), means and intervals (``results``), figures
(``figures``), the page (``page``). Data are in ``data``; ``trials`` lets a crowd vote and a method learn.
"""
