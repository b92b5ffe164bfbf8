"""Trials of which the records are committed repeat where the same code is run."""

import json
import re
from pathlib import Path

import pytest

from bbb_numpy.sampling.mcmc.microcanonical import bias, energy_variance
from bbb_studies.uci import page, records, tables
from bbb_studies.uci.trials import Settings, Trial, measure

COMMITTED = Path(__file__).parents[3] / "benchmarks" / "uci_records.jsonl"
KEYS = [
    f"boston/{method}/00"
    for method in (
        "mean-field", "local-reparam", "full-rank", "map", "renyi", "eubo", "ensemble",
        "laplace", "hmc",
    )
]  # fmt: skip


@pytest.fixture(scope="module")
def committed():
    return {record["key"]: record for record in records.read(COMMITTED)}


@pytest.fixture(scope="module")
def beside():
    return records.read(COMMITTED.with_name("uci_gap_records.jsonl"))


def changed(old, new, name=""):
    """Name the numbers of two records that differ, and by how much.

    Processors differ in the last bit of exp and of sums, and training makes 1e-8 of it.
    """
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        return [text for key in old for text in changed(old[key], new[key], f"{name}.{key}")]
    same = pytest.approx(old, rel=1e-6) == new if isinstance(old, float) else old == new
    return [] if same else [f"{name[1:]}: {old} then, {new} now"]


def as_stored(found):
    return json.loads(json.dumps(found, allow_nan=False))


INPUTS = {"boston": 13, "concrete": 8, "energy": 8, "protein": 9, "wine_red": 11, "yacht": 6}
INPUTS |= {"power": 4, "kin8nm": 8, "naval": 16}


@pytest.mark.equation("D50")
def test_the_bias_told_of_every_trial_of_mclmc_follows_from_its_acceptance(committed, beside):
    told = [one for one in [*committed.values(), *beside] if one["method"] == "mclmc"]
    assert len(told) == 145
    for one in told:
        units, notes = one["settings"]["units"], one["notes"]
        size = (INPUTS[one["set"]] + 1) * units + (units + 1) + 1  # weights, biases and the noise
        wanted = bias(energy_variance(notes["acceptance"], size))
        assert notes["expected_bias"] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_a_committed_trial_repeats_to_six_digits(committed, key):
    old = committed[key]
    if differ := changed(old["versions"], records.recorded_versions()):
        pytest.skip("last bits are those of other versions: " + "; ".join(differ))
    trial = Trial(old["set"], old["method"], old["split"], Settings(**old["settings"]))
    new = as_stored(measure(trial))
    told = ("seed", "chosen", "metrics", "notes", "rows")
    assert changed({name: old[name] for name in told}, {name: new[name] for name in told}) == []


WRITTEN = COMMITTED.with_name("uci.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("method", ["map", "mean-field", "nuts"])
def test_a_row_of_the_committed_table_is_what_its_records_say(committed, method):
    own = [record for record in committed.values() if record["method"] == method]
    *_, row = tables.markdown(own, published=False).splitlines()
    assert re.sub("[* ]", "", row) in re.sub("[* ]", "", WRITTEN)  # bold and aligned elsewhere


def test_the_committed_section_about_gaps_is_what_its_records_say(beside):
    assert page.gap_section(beside) in WRITTEN


@pytest.mark.slow  # integrals for chances take a minute
def test_the_committed_page_is_what_the_committed_records_say(committed, beside):
    command = WRITTEN.rpartition("## To repeat it\n\n```\n")[2].partition("\n```")[0]
    assert page.page(committed.values(), command, beside) == WRITTEN
