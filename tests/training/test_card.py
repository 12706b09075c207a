"""The model card, which is the README of a run."""

import json
import re
import shlex

from keras_seq.settings import load_settings
from keras_seq.training import TrainingResult
from keras_seq.training.result import model_card

RESULT = TrainingResult(
    path="runs/ende",
    steps=12_000,
    minutes=35.26,
    metric="bleu",
    best=34.567,
    best_step=11_500,
    signature="nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0",
)


def test_model_card_reports_the_score_and_how_it_was_measured():
    settings = load_settings(
        overrides={
            "data.source": "train.en",
            "data.target": "train.de",
            "training.validation_beam_size": 3,
        }
    )
    card = model_card(settings, RESULT, 1_234_567)
    assert "transformer of 1,234,567 parameters" in card
    assert "`train.en -> train.de`" in card
    assert f"34.57, signature `{RESULT.signature}`" in card
    assert "11,500 of 12,000" in card
    assert "35.3" in card
    assert "beam 3" in card
    assert "keras-seq translate runs/ende" in card


def test_model_card_names_the_pairs_file():
    card = model_card(load_settings(overrides={"data.pairs": "pairs.tsv"}), RESULT, 1)
    assert "`pairs.tsv`" in card
    assert "None" not in card


def test_model_card_names_all_source_and_target_files():
    overrides = {"data.source": ["a.en", "b.en"], "data.target": "*.de"}
    assert "`a.en, b.en -> *.de`" in model_card(load_settings(overrides=overrides), RESULT, 1)


def test_card_of_a_trained_run_agrees_with_its_result_and_its_command_runs(
    tiny_run, keras_seq_command
):
    card = (tiny_run / "README.md").read_text("utf-8")
    result = json.loads((tiny_run / "result.json").read_text("utf-8"))["result"]
    pattern = r"validation EXACT \| ([\d.]+), signature `(.*)` \|"
    score, signature = re.search(pattern, card).groups()
    assert f"| judged by exact match | {result['reason']} |" in card
    assert float(score) == round(result["best"], 2)
    assert signature == result["signature"]
    best, last = re.search(r"at step \| (\d+) of (\d+) \|", card).groups()
    assert (int(best), int(last)) == (result["best_step"], result["steps"])
    (command,) = re.findall(r"```\nkeras-seq (.*) < input > output\n```", card)
    found = keras_seq_command(*shlex.split(command), stdin=b"26/09/2034\n\n")
    assert found.code == 0 and len(found.lines) == 2
