"""What `keras-seq translate` translates with where it is given a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from keras_seq_cli.output import notice
from keras_seq_cli.output_options import OutputOptions
from keras_seq_cli.pictures import AttentionPictures, BeamPictures
from keras_seq_cli.quiet import import_quietly

if TYPE_CHECKING:
    from keras_seq.run import Run
    from keras_seq.settings import SearchSettings


@dataclass
class RunModel:
    """A run, and what else there is to know before its model is loaded.

    Attributes:
        run: Its directory, as it was given.
        opened: The run.
        which: The checkpoint.
        search: Settings of the search that were given.
        settings: All settings of the search.
        engine: What computes.
        quantize: Arithmetic of CTranslate2.
        ensemble: Directories of other runs.
        shown: What is written besides translations.
    """

    run: str
    opened: Run
    which: str
    search: dict[str, Any]
    settings: SearchSettings
    engine: str
    quantize: str | None
    ensemble: tuple[str, ...]
    shown: OutputOptions

    def __post_init__(self) -> None:
        from keras_seq.analysis.attention_layer import attention_shape

        self.n_best = self.settings.n_best
        self.batch_size = self.settings.batch_size
        self.translator: Any = None
        self._explainer: Any = None
        if self.engine == "ctranslate2":
            # Here, because it takes no time and what is wrong is said before a file is opened.
            self.translator = load_ctranslate2(self.run, self.which, self.quantize, self.search)
        self.shown.check_heads(*attention_shape(self.opened.settings))
        if self.shown.show_beam is not None and self.settings.method != "beam":
            raise typer.BadParameter("sampling has no beam", param_hint="'--show-beam'")

    @property
    def target_tokenizer(self) -> Any:
        """Names the tokens of a translation."""
        return self.opened.target_tokenizer

    def load(self) -> None:
        """Loads the model."""
        heavy = import_quietly("keras_seq.inference.translator")
        self.translator = heavy.Translator.load(
            self.run,
            which=self.which,
            ensemble=self.ensemble,
            notice=notice,
            unknown=self.shown.replace_unknown,
            **self.search,
        )

    def pictures(self) -> list[AttentionPictures | BeamPictures]:
        """What draws pictures, if any are asked for."""
        name, shown = self.opened.path.name, self.shown
        found: list[AttentionPictures | BeamPictures] = []
        if shown.attention is not None:
            found.append(AttentionPictures(shown, name, self.explain))
        if shown.show_beam is not None:
            found.append(BeamPictures(shown.show_beam, name, self.settings, self._beam_view))
        return found

    def explain(self) -> Any:
        """What tells the attention of translations; once the model is loaded."""
        if self._explainer is None:
            from keras_seq.analysis.explanation import Explainer

            self._explainer = Explainer(
                self.opened,
                self.translator.model,
                alignment=self.shown.alignment,
                replace_unknown=self.shown.replace_unknown,
                layer=self.shown.attention_layer,
                head=self.shown.attention_head,
            )
        return self._explainer

    def _beam_view(self) -> Any:
        from keras_seq.analysis.beam_tree import BeamView

        return BeamView(
            self.translator.model,
            self.opened.source_tokenizer,
            self.opened.target_tokenizer,
            self.settings,
            self.opened.settings.data.max_source_length,
            unknown=self.shown.replace_unknown,
        )


def load_ctranslate2(run: str, which: str, quantize: str | None, search: dict[str, Any]) -> Any:
    """The translator of `--engine ctranslate2`."""
    from keras_seq.serving.ctranslate2_translator import CTranslate2Translator

    return CTranslate2Translator.load(
        run, which=which, quantize=quantize or "float32", notice=notice, **search
    )
