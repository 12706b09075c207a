"""Trains keras-seq with its defaults, and a peer in its own environment, on public tasks.

    python benchmarks/public/compare.py ../shared/data/public --work runs/public

DATA is a folder with the files that `tasks.py` names. `--work` keeps environments, models and
predictions, so an interrupted comparison continues with the same command. Each system is trained
once and predicts the validation file, or with `--test` the test file. The processor time covers the
training with its validations. The table shows the mean and the standard deviation over the seeds.
If a system fails, the table says why, the other systems continue, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import machine  # noqa: E402
import picture  # noqa: E402
import systems  # noqa: E402
import table  # noqa: E402
from environments import SkippedError  # noqa: E402
from tasks import TASKS, PublicTask, read, read_lines, write_small  # noqa: E402


class Result(NamedTuple):
    """Scores and processor minutes of a system on a task, one of each per seed.

    `failure` is the reason if the training or the prediction failed.
    """

    task: PublicTask
    system: str
    scores: list[float]
    minutes: list[float]
    failure: str = ""


def score(task: PublicTask, expected: list[str], predicted: list[str]) -> float:
    """Returns the metric of a task in percent."""
    from keras_seq.scoring import score as corpus_scores
    from keras_seq.scoring import tag_scores

    if len(expected) != len(predicted):
        raise systems.FailedError(f"{len(predicted):,} predictions for {len(expected):,} lines")
    if task.kind == "translate":
        tokenizer = "char" if task.languages[1] == "ja" else "13a"
        name = task.metric.lower()
        [found] = corpus_scores(predicted, [expected], metrics=[name], tokenize=tokenizer)
        print(f"{task.name}: {found.text}", file=sys.stderr)
        return found.value
    if task.kind != "tag":
        # Strings are compared as they are written, apart from spaces at the ends.
        equal = (a.strip() == b.strip() for a, b in zip(expected, predicted, strict=True))
        return 100 * sum(equal) / len(expected)
    rows = ([line.split() for line in lines] for lines in (expected, predicted))
    scores = tag_scores(*rows)
    return 100 * (scores.entities.f1 if task.metric == "entity F1" else scores.words.accuracy)


def measure(
    task: PublicTask, system: str, options: argparse.Namespace, data: pathlib.Path
) -> Result:
    """Trains and scores a system with each seed; kept results are read."""
    part = "test" if options.test else "dev"
    result = Result(task, system, [], [])
    for seed in range(1, options.seeds + 1):
        work = options.work / systems.folder(task, system, seed)
        note = work / "-".join(f"{task.name} {task.metric} {part}.json".split())
        if not note.exists():
            print(f"{task.name}, {system}, seed {seed}", file=sys.stderr, flush=True)
            found = systems.predict(system, task, data, work, part, seed, options.smoke)
            value = found.score
            if value is None:
                value = score(task, expected_lines(task, data, part), found.lines)
            note.write_text(json.dumps({"score": value, "minutes": found.seconds / 60}))
        kept = json.loads(note.read_text())
        result.scores.append(kept["score"])
        result.minutes.append(kept["minutes"])
    return result


def expected_lines(task: PublicTask, data: pathlib.Path, part: str) -> list[str]:
    if task.kind == "translate":
        return read_lines(data, f"{task.file(part)}.{task.languages[1]}")
    return [row[1] for row in read(data, task.file(part))]


def main() -> int:
    """Returns the exit code."""
    names = [task.name for task in TASKS]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=pathlib.Path, nargs="?", help="the folder of data")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="keeps all that is made")
    parser.add_argument("--task", action="append", choices=names, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--test", action="store_true", help="score the test files")
    systems_named = [*systems.VARIANTS, *systems.PEERS]
    parser.add_argument("--system", action="append", choices=systems_named, metavar="NAME")
    parser.add_argument("--picture", type=pathlib.Path, help="an .svg or .png to write")
    parser.add_argument("--smoke", action="store_true", help="two updates on tiny files")
    options = parser.parse_args()
    options.work = options.work.resolve()
    tasks = [task for task in TASKS if options.task is None or task.name in options.task]
    data = options.data
    if options.smoke:
        data = options.work / "data"
        tasks = list(write_small(data))
    elif data is None:
        parser.error("DATA is missing: the folder of data")
    results = [
        result
        for task in tasks
        for system in (*task.ours, *task.peers)
        if options.system is None or system in options.system
        if (result := measure_if_possible(task, system, options, data)) is not None
    ]
    show(results)
    measured = [result for result in results if not result.failure]
    if options.picture and measured:
        picture.draw(measured, options.picture)
    print(machine.describe())
    return int(any(result.failure for result in results))


def measure_if_possible(
    task: PublicTask, system: str, options: argparse.Namespace, data: pathlib.Path
) -> Result | None:
    """Measures a system. A failure is a result with its reason; a skipped system is None."""
    try:
        return measure(task, system, options, data)
    except SkippedError as error:
        print(f"{task.name}, {system}: skipped: {error}", file=sys.stderr, flush=True)
        return None
    except (systems.FailedError, OSError, ValueError) as error:
        print(f"{task.name}, {system}: failed: {error}", file=sys.stderr, flush=True)
        return Result(task, system, [], [], str(error) or type(error).__name__)


def show(results: list[Result]) -> None:
    rows = []
    for result in results:
        name = f"{result.task.name}, {result.task.metric}"
        if result.failure:
            reason = " ".join(result.failure.replace("|", "/").split())
            rows.append((name, result.system, f"failed: {reason}", "", ""))
            continue
        digits = 3 if result.task.kind == "write" else 1
        deviation = statistics.stdev(result.scores) if len(result.scores) > 1 else 0.0
        rows.append(
            (
                name,
                result.system,
                f"{statistics.mean(result.scores):.{digits}f}",
                f"{deviation:.{digits}f}",
                f"{statistics.mean(result.minutes):.1f}",
            )
        )
    head = ("task, metric", "system", "mean", "deviation", "processor minutes")
    table.show(head, rows)


if __name__ == "__main__":
    sys.exit(main())
