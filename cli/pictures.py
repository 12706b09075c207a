"""Pictures of attention and of the beam, beside translations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_seq_cli.output import notice
from keras_seq_cli.output_options import OutputOptions

# A page of so many lines is a few megabytes.
LINES = {"term": sys.maxsize, "html": 100, "png": 20, "beam": 20}


class AttentionPictures:
    """Draws the attention of lines as they come, or all at the end.

    Args:
        shown: What is asked for.
        run: The name of the run, for the page.
        explain: The `Explainer`; called for when there is something to explain.
    """

    def __init__(self, shown: OutputOptions, run: str, explain: Callable[[], Any]) -> None:
        self._kind = shown.attention or ""
        self._path = shown.attention_file
        self._run = run
        self._explain = explain
        self._kept: list[tuple[int, str, str, Any]] = []
        self._left = 0
        # Emptied at the start: what an earlier command drew is none of this one's.
        if self._kind == "term" and self._path is not None:
            Path(self._path).write_text("", encoding="utf-8")

    def add(self, first: int, lines: Sequence[str], found: Sequence[Sequence[Any]]) -> None:
        """Some lines with their translations."""
        wanted = [i for i, hypotheses in enumerate(found) if hypotheses]
        room = LINES[self._kind] - len(self._kept)
        self._left += len(wanted[room:])
        wanted = wanted[:room]
        if not wanted:
            return
        attention = self._explain().best_attention(
            [lines[i] for i in wanted], [found[i] for i in wanted], all_layers=self._kind == "html"
        )
        drawn = [
            (first + i, lines[i], found[i][0].text, one)
            for i, one in zip(wanted, attention, strict=True)
        ]
        if self._kind == "term":
            self._print(drawn)
        else:
            self._kept += drawn

    def finish(self) -> None:
        """Writes what is written at the end."""
        if self._kind == "term" or self._path is None:
            return
        if not self._kept:
            notice(f"{self._path}: not written, there is nothing to show")
            return
        if self._kind == "html":
            self._write_page(self._path)
        else:
            self._write_images(Path(self._path))
        if self._left:
            notice(f"{self._path}: the first {len(self._kept)} lines; {self._left:,} are left out")

    def _print(self, drawn: Sequence[tuple[int, str, str, Any]]) -> None:
        from rich.console import Console

        from keras_seq_cli.attention_map import print_map

        explain = self._explain()
        stream: Any = sys.stderr
        if self._path is not None:
            stream = open(self._path, "a", encoding="utf-8", newline="\n", errors="replace")
        try:
            console = Console(file=stream, highlight=False, markup=False)
            for number, source, text, one in drawn:
                title = f"{number}: {source}  ->  {text}"
                print_map(console, title, *explain.pieces(one), one.weights.tolist())
        finally:
            if self._path is not None:
                stream.close()

    def _write_page(self, path: str) -> None:
        from keras_seq.analysis.pages.page import make_page

        explain = self._explain()
        lines = []
        for number, source, text, one in self._kept:
            source_tokens, tokens = explain.pieces(one)
            thousandths = (one.weights * 1000).round().astype(int)
            weights = thousandths.reshape(*thousandths.shape[:2], -1).tolist()
            lines.append(
                {
                    "number": number,
                    "source": source,
                    "text": text,
                    "source_tokens": source_tokens,
                    "tokens": tokens,
                    "weights": weights,
                }
            )
        layers, heads = self._kept[0][3].weights.shape[:2]
        data = {
            "run": self._run,
            "layers": layers,
            "heads": heads,
            "layer": explain.layer % layers,
            "head": explain.head,
            "left": self._left,
            "lines": lines,
        }
        _write(path, make_page("attention", data))

    def _write_images(self, path: Path) -> None:
        from keras_seq.analysis.attention_image import save_attention_image

        explain = self._explain()
        for number, source, text, one in self._kept:
            # One picture has the name that was given, several have the number of the line, too.
            name = path if len(self._kept) == 1 else path.with_stem(f"{path.stem}-{number}")
            title = f"{source}\n{text}"
            columns, rows = explain.pieces(one)
            save_attention_image(name, title, columns, rows, one.weights)


class BeamPictures:
    """Keeps what the searches for the first lines looked at, for a page.

    Args:
        path: Of the page.
        run: The name of the run.
        settings: Of the search.
        make_view: Makes the `BeamView`, at the first line.
    """

    def __init__(
        self, path: str, run: str, settings: Any, make_view: Callable[[], Callable[[str], Any]]
    ) -> None:
        self._path = path
        self._run = run
        self._settings = settings
        self._make_view = make_view
        self._view: Callable[[str], Any] | None = None
        self._kept: list[dict[str, Any]] = []
        self._left = 0

    def add(self, first: int, lines: Sequence[str], found: Sequence[Sequence[Any]]) -> None:
        """Some lines with their translations; a blank one has no beam."""
        for number, (line, hypotheses) in enumerate(zip(lines, found, strict=True), first):
            if not hypotheses:
                continue
            if len(self._kept) == LINES["beam"]:
                self._left += 1
                continue
            self._view = self._view or self._make_view()
            self._kept.append({"number": number, **self._view(line)})

    def finish(self) -> None:
        """Writes the page."""
        from keras_seq.analysis.pages.page import make_page

        if not self._kept:
            notice(f"{self._path}: not written, there is nothing to show")
            return
        data = {
            "run": self._run,
            "beam_size": self._settings.beam_size,
            "normalization": self._settings.length_normalization,
            "alpha": self._settings.alpha,
            "coverage": self._settings.coverage_penalty > 0,
            "patience": self._settings.patience,
            "left": self._left,
            "lines": self._kept,
        }
        _write(self._path, make_page("beam", data))
        if self._left:
            notice(f"{self._path}: the first {len(self._kept)} lines; {self._left:,} are left out")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="\n", errors="replace") as file:
        file.write(text)
