"""Codec libraries of Kafka's releases, which the reference borrows."""

from __future__ import annotations

import pytest

from conformance.experiments.release_diff.execution import RecordingProxy
from conformance.implementations.jvm.log import JvmLog
from conformance.lockstep.scopes.log import LogLockstep
from kidx.records import Codec
from kidx.records.codecs import compress, decompress

ODD = bytes.fromhex(
    "1e0000000201107676767676767676001e00c7010201107676767676767676000e00b701040100000c0000060100001e00b301"
    "080110767676767676767600"
)
"""Records whose last match zstd up to 1.5.0 writes otherwise."""


@pytest.mark.parametrize("release", ["2.4.0", "3.7.2", "3.8.1", "4.4.0"])
@pytest.mark.parametrize("codec", list(Codec))
def test_kidx_reads_what_a_release_compresses(release, codec):
    written = JvmLog(release).compress(codec, ODD, 2)
    assert decompress(codec, written).read(len(ODD) + 1) == ODD


def test_libraries_of_old_releases_give_other_bytes():
    old, new = (JvmLog(release).compress(Codec.ZSTD, ODD, 2) for release in ("2.7.2", "4.4.0"))
    assert new == compress(Codec.ZSTD, ODD)
    assert old != new


def test_each_reference_of_a_lockstep_borrows_the_libraries_of_its_release(tmp_path):
    lockstep = LogLockstep([JvmLog("2.7.2"), JvmLog("4.4.0")], tmp_path)
    old, new = (group.dialect.compressor(Codec.ZSTD, ODD, 2) for group in lockstep.groups)
    assert old != new
    for group in LogLockstep([], tmp_path, releases=["2.7.2"]).groups:
        assert group.dialect.compressor is None


def test_who_listens_to_a_log_passes_its_libraries_on(tmp_path):
    """As ``diff`` does, whose reference would else compress with libraries of kidx."""
    (group,) = LogLockstep([RecordingProxy(JvmLog("2.7.2")), RecordingProxy(JvmLog("4.4.0"), "2.7.2")], tmp_path).groups
    assert group.dialect.compressor(Codec.ZSTD, ODD, 2) == JvmLog("2.7.2").compress(Codec.ZSTD, ODD, 2)
    assert group.dialect.decompressor is not None
