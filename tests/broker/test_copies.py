"""Copies of partitions in several directories: what brokers make of them at their start, as predicted."""

import shutil

import pytest
from copies import END, FATAL, REAL, SHORT_END, TOGETHER, arrange, ends_after, predicted_ends, prepare

from conformance.studies.start_damage.observing import LOG_DIRS
from kidx.startup import predict
from kidx.verify import verify_paths

LENGTH = {"full": END, "short": SHORT_END}


def predicted(root, release, numbers):
    paths = [root / name for name in LOG_DIRS]
    return predicted_ends(predict(paths, verify_paths(paths, release=release, processes=1), release), root, numbers)


@pytest.mark.broker
@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.in_turn(2)
@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_every_combination_of_copies_is_as_predicted(release, tmp_path):
    prepared = prepare(release, tmp_path / "prepared", len(TOGETHER))
    root = tmp_path / "together"
    shutil.copytree(prepared, root)
    for number, combination in enumerate(TOGETHER):
        arrange(prepared, root, number, combination)
    expected = predicted(root, release, range(len(TOGETHER)))
    assert ends_after(release, root, range(len(TOGETHER))) == {number: end for number, (end, _) in expected.items()}
    for number, combination in enumerate(TOGETHER):
        own, elsewhere, _, future_elsewhere = combination
        longest = max((LENGTH.get(kind, 0) for kind in combination), default=0)
        end, is_lost = expected[number]
        is_beside = elsewhere in REAL and future_elsewhere in REAL and own not in REAL
        assert is_lost == (end < longest or not REAL.intersection(combination)) or is_beside, combination
    for combination in FATAL:
        root = tmp_path / "alone"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(prepared, root)
        arrange(prepared, root, 0, combination)
        assert predicted(root, release, [0]) is None, combination
        assert ends_after(release, root, [0]) is None, combination
