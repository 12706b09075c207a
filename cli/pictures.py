"""Pictures of attention weights and beam search."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_seq_cli.output import notice
from keras_seq_cli.output_options import OutputOptions

# Maximum number of lines per kind of picture, to limit a page to a few megabytes.
LINES = {"term": sys.maxsize, "html": 100, "png": 20, "beam": 20}


class AttentionPictures:
    """Draws attention weights, immediately on the terminal or at the end in files.

    Args:
        outputs: The output options.
        run: The name of the run, for the page.
        explain: Function that returns the `Explainer`; called for the first translation.
    """

    def __init__(self, outputs: OutputOptions, run: str, explain: Callable[[], Any]) -> None:
        self._kind = outputs.attention or ""
        self._path = outputs.attention_file
        self._run = run
        self._explain = explain
        self._lines: list[tuple[int, str, str, Any]] = []
        self._omitted = 0
        # Empty the file, because `add` appends to it.
        if self._kind == "term" and self._path is not None:
            Path(self._path).write_text("", encoding="utf-8", newline="\n")

    def add(self, first: int, lines: Sequence[str], translations: Sequence[Sequence[Any]]) -> None:
        """Draws the attention weights of lines, or stores the weights until `finish`.

        Args:
            first: Number of the first line.
            lines: The lines.
            translations: The hypotheses of each line, best first; empty for a blank line.
        """
        indices = [i for i, hypotheses in enumerate(translations) if hypotheses]
        room = LINES[self._kind] - len(self._lines)
        self._omitted += len(indices[room:])
        indices = indices[:room]
        if not indices:
            return
        attention = self._explain().best_attention(
            [lines[i] for i in indices],
            [translations[i] for i in indices],
            all_layers=self._kind == "html",
        )
        images = [
            (first + i, lines[i], translations[i][0].text, weights)
            for i, weights in zip(indices, attention, strict=True)
        ]
        if self._kind == "term":
            self._print(images)
        else:
            self._lines += images

    def finish(self) -> None:
        """Writes the stored lines to an HTML page or to images."""
        if self._kind == "term" or self._path is None:
            return
        if not self._lines:
            notice(f"{self._path}: not written, no line has a translation")
            return
        if self._kind == "html":
            self._write_page(self._path)
        else:
            self._write_images(Path(self._path))
        if self._omitted:
            notice(
                f"{self._path}: shows the first {len(self._lines)} lines, omits {self._omitted:,}"
            )

    def _print(self, images: Sequence[tuple[int, str, str, Any]]) -> None:
        from keras_seq.storage import named_errors

        if self._path is None:
            self._print_to(sys.stderr, images)
            return
        with (
            named_errors(self._path),
            open(self._path, "a", encoding="utf-8", newline="\n", errors="replace") as stream,
        ):
            self._print_to(stream, images)

    def _print_to(self, stream: Any, images: Sequence[tuple[int, str, str, Any]]) -> None:
        from rich.console import Console

        from keras_seq_cli.attention_map import print_map

        explain = self._explain()
        console = Console(file=stream, highlight=False, markup=False)
        for number, source, text, attention in images:
            title = f"{number}: {source}  ->  {text}"
            print_map(console, title, *explain.pieces(attention), attention.weights.tolist())

    def _write_page(self, path: str) -> None:
        from keras_seq.analysis.search_pages import AttendedLine, attention_page

        lines = [AttendedLine(*line) for line in self._lines]
        attention_page(lines, self._explain(), self._run, self._omitted).save(path)

    def _write_images(self, path: Path) -> None:
        from keras_seq.analysis.attention_image import save_attention_image

        explain = self._explain()
        for number, source, text, attention in self._lines:
            # If there are several images, add the line number to each file name.
            name = path if len(self._lines) == 1 else path.with_stem(f"{path.stem}-{number}")
            title = f"{source}\n{text}"
            columns, rows = explain.pieces(attention)
            save_attention_image(name, title, columns, rows, attention.weights)


class BeamPictures:
    """Writes an HTML page with the tree of hypotheses for each of the first lines.

    Args:
        path: File for the page.
        run: The name of the run.
        settings: The search settings.
        make_view: Function that returns the `BeamView`; called for the first translation.
    """

    def __init__(
        self, path: str, run: str, settings: Any, make_view: Callable[[], Callable[[str], Any]]
    ) -> None:
        self._path = path
        self._run = run
        self._settings = settings
        self._make_view = make_view
        self._view: Callable[[str], Any] | None = None
        self._lines: list[dict[str, Any]] = []
        self._omitted = 0

    def add(self, first: int, lines: Sequence[str], translations: Sequence[Sequence[Any]]) -> None:
        """Stores the hypotheses of lines; skips blank lines, which have no hypotheses."""
        for number, (line, hypotheses) in enumerate(zip(lines, translations, strict=True), first):
            if not hypotheses:
                continue
            if len(self._lines) == LINES["beam"]:
                self._omitted += 1
                continue
            self._view = self._view or self._make_view()
            self._lines.append({"number": number, **self._view(line)})

    def finish(self) -> None:
        """Writes the HTML page."""
        from keras_seq.analysis.search_pages import beam_page

        if not self._lines:
            notice(f"{self._path}: not written, no line has a translation")
            return
        beam_page(self._lines, self._settings, self._run, self._omitted).save(self._path)
        if self._omitted:
            notice(
                f"{self._path}: shows the first {len(self._lines)} lines, omits {self._omitted:,}"
            )
