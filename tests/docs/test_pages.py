"""The runner of pages itself: what is wrong is found, and said with its page and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import PageError, Shown, blocks, commands, run, same
from tests.docs.refresh import anew


def page(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "page.md"
    path.write_text(text)
    return path


SHARED = """
```python
a = 2
```

<!--
```python
a += 1
```
-->

```python
print(a)
```

```output
3
```
"""

PIPED = """
```csv a.csv
task,worker,label
1,x,p
1,y,p
```

```console
$ cat a.csv |\\
    head -2 > b.csv
$ cat b.csv
task,worker,label
1,x,p
```
"""


def test_blocks_share_their_names_and_what_they_print_is_compared(tmp_path: Path) -> None:
    run(page(tmp_path, SHARED))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text\n\n```python\na = 1\n1 / 0\n```\n", "page.md, line 5: ZeroDivisionError"),
        ("```python\na = (\n```\n", "page.md, line 2: SyntaxError"),
        ("```python\nprint(1.5)\n```\n```output\n1.7\n```\n", "page.md, line 5: the block before prints"),
        ("```output\n1\n```\n", "page.md, line 2: output that follows no block"),
        ("```python\n", "page.md, line 1: a block opens"),
        ("```pyhton\n```\n", "page.md, line 2: a block of pyhton"),
        ("```console\n$ voxpop methods\n$ voxpop methods dawid\n```\n", "page.md, line 3: .* exit code 2"),
        ("```console\n$ voxpop --version\nvoxpop 9.9\n```\n", "page.md, line 3: .* prints something else"),
        ("```console\n$ true\n```\n", "page.md, line 2: 'true' is not a command"),
        ("```python\nimport warnings\nwarnings.warn('careful')\n```\n", "page.md, line 3: UserWarning: careful"),
    ],
)
def test_what_is_wrong_is_said_with_page_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PageError, match=message):
        run(page(tmp_path, text))


def test_a_failing_command_may_show_its_exit_code(tmp_path: Path) -> None:
    run(page(tmp_path, "```console\n$ voxpop methods dawid\nerror: unknown method 'dawid': ...\n$ echo $?\n2\n```\n"))


def test_commands_have_pipes_files_and_long_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page(tmp_path, PIPED))
    assert Path("b.csv").read_text() == "task,worker,label\n1,x,p\n"


def test_blocks_know_their_lines(tmp_path: Path) -> None:
    found = blocks(page(tmp_path, "a\n\n```console\n$ one\nx\n$ two\n```\n"))
    assert [(c.line, c.text, c.shown) for c in commands(found[0])] == [(4, "one", "x\n"), (6, "two", "")]


@pytest.mark.parametrize(
    ("shown", "printed", "equal"),
    [
        ("a  b\n──\n", "a b\n──────\n", True),
        ("0.93 of 7", "0.94 of 7", True),
        ("0.93 of 7", "0.95 of 7", False),
        ("0.93 of 7", "0.93 of 8", False),
        ("one\n...\nfour", "one\ntwo\nthree\nfour", True),
        ("one\n...\nfour", "one\ntwo\nthree", False),
        ("a (b) [c]", "a (b) [c]", True),
        ("-0.00", "0.00", True),
    ],
)
def test_what_counts_as_the_same(shown: str, printed: str, equal: bool) -> None:
    assert same(shown, printed) is equal


@pytest.mark.parametrize(
    ("shown", "printed", "new"),
    [
        ("one 1\n", "one 2\n", ["one 2"]),
        ("a 1\n...\nb 1\nc\n...\n", "a 2\nx\nb 2\nd\ny\n", ["a 2", "...", "b 2", "d", "..."]),
        ("a ... 1\nb\n", "a x 1\nc\n", ["a ... 1", "c"]),
        ("a\n...\nb\n", "a\nx\n", None),
    ],
)
def test_what_is_shown_can_be_written_anew(shown: str, printed: str, new: list[str] | None) -> None:
    assert anew(Shown(1, "it", shown, printed)) == new
