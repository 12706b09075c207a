"""Translation with a run, for `keras-seq translate`."""

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
    """A run for `keras-seq translate`; checks the options before the model is loaded.

    Attributes:
        run: Directory of the run, as on the command line.
        opened: The run.
        which: The checkpoint.
        search: The search options on the command line.
        settings: All search settings.
        engine: `"tensorflow"` or `"ctranslate2"`.
        quantize: Quantization of CTranslate2; None for the default.
        ensemble: Directories of the other runs.
        outputs: The output options.
    """

    run: str
    opened: Run
    which: str
    search: dict[str, Any]
    settings: SearchSettings
    engine: str
    quantize: str | None
    ensemble: tuple[str, ...]
    outputs: OutputOptions

    def __post_init__(self) -> None:
        from keras_seq.analysis.attention_layer import attention_shape

        self.n_best = self.settings.n_best
        self.batch_size = self.settings.batch_size
        self.translator: Any = None
        self._explainer: Any = None
        if self.engine == "ctranslate2":
            # Load now, to report errors before a file is opened; CTranslate2 loads fast.
            self.translator = load_ctranslate2(self.run, self.which, self.quantize, self.search)
        self.outputs.check_heads(*attention_shape(self.opened.settings))
        if self.outputs.show_beam is not None and self.settings.method != "beam":
            raise typer.BadParameter("needs --method beam", param_hint="'--show-beam'")

    @property
    def source_tokenizer(self) -> Any:
        """The tokenizer of the lines."""
        return self.opened.source_tokenizer

    @property
    def target_tokenizer(self) -> Any:
        """The tokenizer of the translations."""
        return self.opened.target_tokenizer

    @property
    def languages(self) -> list[str]:
        """The target languages of the run."""
        return self.opened.languages

    def load(self) -> None:
        """Loads the model."""
        module = import_quietly("keras_seq.inference.translator")
        self.translator = module.Translator.load(
            self.run,
            which=self.which,
            ensemble=self.ensemble,
            notice=notice,
            unknown=self.outputs.replace_unknown,
            **self.search,
        )

    def pictures(self) -> list[AttentionPictures | BeamPictures]:
        """Returns one object for each kind of picture in the output options."""
        name, outputs = self.opened.path.name, self.outputs
        pictures: list[AttentionPictures | BeamPictures] = []
        if outputs.attention is not None:
            pictures.append(AttentionPictures(outputs, name, self.explain))
        if outputs.show_beam is not None:
            pictures.append(BeamPictures(outputs.show_beam, name, self.settings, self._beam_view))
        return pictures

    def explain(self) -> Any:
        """Returns the `Explainer` of the loaded model."""
        if self._explainer is None:
            from keras_seq.analysis.explanation import Explainer

            self._explainer = Explainer(
                self.opened,
                self.translator.model,
                alignment=self.outputs.alignment,
                replace_unknown=self.outputs.replace_unknown,
                layer=self.outputs.attention_layer,
                head=self.outputs.attention_head,
            )
        return self._explainer

    def _beam_view(self) -> Any:
        from keras_seq.analysis.beam_tree import BeamView

        return BeamView(self.translator)


def load_ctranslate2(run: str, which: str, quantize: str | None, search: dict[str, Any]) -> Any:
    """Loads the translator for `--engine ctranslate2`."""
    from keras_seq.serving.ctranslate2_translator import CTranslate2Translator

    return CTranslate2Translator.load(
        run, which=which, quantize=quantize or "float32", notice=notice, **search
    )
