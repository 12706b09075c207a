"""Records a command in a terminal as an SVG picture that plays in a browser.

    python docs/make_recording.py FILE COMMAND [ARGUMENT ...]
    python docs/make_recording.py docs/pictures/demo.svg keras-seq demo

Each line appears when the command printed it, and a line that the command replaces, such as the
progress of a training, changes. The time is compressed to half a minute. Viewers without animation
show the end.
"""

from __future__ import annotations

import fcntl
import os
import pathlib
import pty
import struct
import sys
import termios
import time
from typing import NamedTuple
from xml.sax.saxutils import escape

COLUMNS, ROWS = 100, 28
SECONDS = 30
# States of a line that is replaced; more would only make the file larger.
STATES = 24
# Pixels.
ADVANCE, HEIGHT, MARGIN = 8.4, 19, 16
_CLEAR = "\r\x1b[K"


class Shown(NamedTuple):
    """A line of the terminal, from when it appears until it is replaced; None for never."""

    row: int
    text: str
    begin: float
    end: float | None


def record(command: list[str]) -> list[tuple[float, str]]:
    """Runs a command in a terminal. Returns what it printed, with the seconds since its start."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    begin, printed, rest = time.monotonic(), [], b""
    while True:
        try:
            rest += os.read(terminal, 65_536)
        except OSError:
            # The command has ended.
            break
        text = rest.decode("utf-8", "ignore")
        rest = rest[len(text.encode()) :]
        printed.append((time.monotonic() - begin, text))
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise SystemExit("".join(text for _, text in printed))
    return printed


def lines(printed: list[tuple[float, str]]) -> list[Shown]:
    """Returns the lines in order; a line longer than the terminal continues on the next row."""
    shown: list[Shown] = []
    row, current, begin = 0, "", 0.0
    states: list[Shown] = []
    for seconds, text in printed:
        for position, part in enumerate(text.replace("\r\n", "\n").split(_CLEAR)):
            if position and current:
                states.append(Shown(row, current, begin, seconds))
                current = ""
            *ended, last = part.split("\n")
            for line in ended:
                shown += _thinned(states)
                states = []
                whole = current + line
                for piece in _pieces(whole):
                    shown.append(Shown(row, piece, seconds, None))
                    row += 1
                current = ""
            if last:
                begin = begin if current else seconds
                current += last
    return shown


def _thinned(states: list[Shown]) -> list[Shown]:
    """Returns at most `STATES` of the states of a line."""
    step = -(-len(states) // STATES) or 1
    chosen = states[::step]
    ends = [state.begin for state in chosen[1:]] + [states[-1].end] if states else []
    return [state._replace(end=end) for state, end in zip(chosen, ends, strict=True)]


def _pieces(line: str) -> list[str]:
    return [line[at : at + COLUMNS] for at in range(0, len(line), COLUMNS)] or [""]


def svg(command: list[str], shown: list[Shown]) -> str:
    """Returns the picture."""
    duration = max(line.begin for line in shown)
    width, height = round(COLUMNS * ADVANCE + 2 * MARGIN), ROWS * HEIGHT + 2 * MARGIN
    scrolls: list[float] = []
    texts = [_text(0, f"$ {' '.join(command)}", "", "#8fd18f")]
    for line in shown:
        begin, end = (
            1 + SECONDS * seconds / duration for seconds in (line.begin, line.end or duration)
        )
        if line.row + 2 > ROWS + len(scrolls):
            # The line is below the last row, so all lines move up.
            scrolls.append(begin)
        if line.end is None:
            change = f'<set attributeName="visibility" to="hidden" begin="0s" end="{begin:.2f}s"/>'
            texts.append(_text(line.row + 1, line.text, change, "#e6e6e6"))
        else:
            change = (
                f'<set attributeName="visibility" to="visible" '
                f'begin="{begin:.2f}s" end="{end:.2f}s"/>'
            )
            hidden = ' visibility="hidden"'
            texts.append(_text(line.row + 1, line.text, change, "#9ecbff", hidden))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="Menlo, Consolas, monospace" '
            f'font-size="14">',
            "<style>text { white-space: pre }</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#1c2128"/>',
            f'<svg y="{MARGIN}" width="{width}" height="{height - 2 * MARGIN}">',
            f'<g transform="translate(0 {-HEIGHT * len(scrolls)})">',
            *_scrolling(scrolls),
            *texts,
            "</g></svg></svg>\n",
        ]
    )


def _scrolling(scrolls: list[float]) -> list[str]:
    """Returns the element that moves all lines up by one row at each time, or none."""
    if not scrolls:
        return []
    moves = ";".join(f"0 {-HEIGHT * number}" for number in range(len(scrolls) + 1))
    total = scrolls[-1] + 1
    times = ";".join(f"{seconds / total:.4f}" for seconds in (0, *scrolls))
    return [
        f'<animateTransform attributeName="transform" type="translate" calcMode="discrete" '
        f'values="{moves}" keyTimes="{times}" dur="{total:.2f}s" fill="freeze"/>'
    ]


def _text(row: int, text: str, change: str, color: str, more: str = "") -> str:
    height = (row + 1) * HEIGHT - 5
    return f'<text x="{MARGIN}" y="{height}" fill="{color}"{more}>{escape(text)}{change}</text>'


if __name__ == "__main__":
    file, *command = sys.argv[1:]
    pathlib.Path(file).write_text(svg(command, lines(record(command))), encoding="utf-8")
